"""The questions of the page "Why several heads", answered by its own functions."""

from __future__ import annotations

import math

from pages.learn.why_several_heads.cost import noise
from pages.learn.why_several_heads.readings import AVERAGE, BEST, TwoHeads
from serving.runs import Run
from ui.widgets.questions import Question, nearest

NOTHING = 1e-6  # of what a map misses: rounding


def questions(run: Run, layer: int, heads: TwoHeads) -> list[Question]:
    """Three questions about the text, the layer and the heads that the page shows."""
    return [_parameters_question(run), _noise_question(run, layer), _map_question(heads)]


def _parameters_question(run: Run) -> Question:
    from pages.learn.why_several_heads.experiment.head_size import n_parameters

    width = run.tensors.states.shape[-1]
    with_one, with_two = n_parameters(width, 1), n_parameters(width, 2)
    right, wrong = nearest(
        with_two / with_one, {"It doubles": 2.0, "It stays the same": 1.0, "It halves": 0.5}
    )
    return Question(
        ask="A layer keeps its width, and has two heads in place of one. What becomes of the "
        "number of its parameters?",
        right=right,
        wrong=wrong,
        because=f"With a width of {width}, one head has {with_one:,} parameters and two heads have "
        f"{with_two:,}: the same matrices, cut into two.",
    )


def _noise_question(run: Run, layer: int) -> Question:
    """Without two tokens whose vectors have a direction, by the formula."""
    width = run.tensors.states.shape[-1]
    if len(run.tokens) < 2 or not run.tensors.states[layer].any():
        few, many = (math.sqrt(count / width) for count in (1, 4))
    else:
        measured = {size.n_heads: size.measured for size in noise(run, layer)}
        few, many = measured[1], measured.get(4, 2 * measured[1])
    right, wrong = nearest(
        math.log(many / few),
        {
            "It stays the same": 0.0,
            "It becomes about twice as large": math.log(2),
            "It becomes about four times as large": math.log(4),
        },
    )
    return Question(
        ask="Four heads share the width of one. What becomes of the noise of a score?",
        right=right,
        wrong=wrong,
        because=f"{few:.3f} with one head, {many:.3f} with four: a quarter of the numbers, and the "
        "noise falls with the root of their number.",
    )


def _map_question(heads: TwoHeads) -> Question:
    average, best = heads.whole[AVERAGE], heads.whole[BEST]
    right, wrong = nearest(
        best / average if average > NOTHING else 0.0,
        {
            "Yes, it misses nothing": 0.0,
            "It misses about half as much": 0.5,
            "It misses about three quarters as much": 0.75,
            "Hardly: it misses nearly as much": 1.0,
        },
    )
    return Question(
        ask=f"One head in place of {heads.names[0]} and {heads.names[1]} may have any single map. "
        "Can a better one than the average keep what both hand on?",
        right=right,
        wrong=wrong,
        because=f"Over the whole text the average misses {average:.0%}, and the best single map "
        f"that exists {best:.0%}.",
    )
