"""Quiz questions of the page "Why several heads"."""

from __future__ import annotations

import math

from pages.learn.why_several_heads.cost import noise
from pages.learn.why_several_heads.two_heads import AVERAGE, BEST, TwoHeads
from serving.runs import Run
from ui.widgets.questions import Question, nearest_choice

NOTHING = 1e-6  # errors below this are rounding


def questions(run: Run, layer: int, heads: TwoHeads) -> list[Question]:
    """Build three questions about the text, layer and heads on the page."""
    return [_parameters_question(run), _noise_question(run, layer), _map_question(heads)]


def _parameters_question(run: Run) -> Question:
    from pages.learn.why_several_heads.experiment.head_size import n_parameters

    width = run.tensors.states.shape[-1]
    with_one, with_two = n_parameters(width, 1), n_parameters(width, 2)
    right, wrong = nearest_choice(
        with_two / with_one, {"It doubles": 2.0, "It stays the same": 1.0, "It halves": 0.5}
    )
    return Question(
        prompt="You split a layer into two heads instead of one and keep its width. What happens "
        "to "
        "the number of parameters?",
        right=right,
        wrong=wrong,
        explanation=f"With a width of {width}, one head has {with_one:,} parameters, and two heads "
        f"have {with_two:,}. The matrices are the same, just cut in two.",
    )


def _noise_question(run: Run, layer: int) -> Question:
    """Ask about noise; uses the formula if the text doesn't have two nonzero vectors."""
    width = run.tensors.states.shape[-1]
    if len(run.tokens) < 2 or not run.tensors.states[layer].any():
        few, many = (math.sqrt(count / width) for count in (1, 4))
    else:
        measurements = {size.n_heads: size.measured for size in noise(run, layer)}
        few, many = measurements[1], measurements.get(4, 2 * measurements[1])
    right, wrong = nearest_choice(
        math.log(many / few),
        {
            "It stays the same": 0.0,
            "It roughly doubles": math.log(2),
            "It gets about four times as large": math.log(4),
        },
    )
    return Question(
        prompt="Four heads share the width of one. What happens to the noise in a score?",
        right=right,
        wrong=wrong,
        explanation=f"It's {few:.3f} with one head and {many:.3f} with four. Each head has a "
        "quarter "
        "of the numbers, and noise is proportional to one over the square root of that.",
    )


def _map_question(heads: TwoHeads) -> Question:
    average, best = heads.whole[AVERAGE], heads.whole[BEST]
    right, wrong = nearest_choice(
        best / average if average > NOTHING else 0.0,
        {
            "It has no error": 0.0,
            "Its error is about half as large": 0.5,
            "Its error is about three quarters as large": 0.75,
            "Its error is almost as large": 1.0,
        },
    )
    return Question(
        prompt=f"A single head replaces {heads.names[0]} and {heads.names[1]} and can use any map. "
        "How good is the best map, compared to the average of both heads?",
        right=right,
        wrong=wrong,
        explanation=f"Over the whole text, the average of both heads has an error of "
        f"{average:.0%}, "
        f"and the best single map has an error of {best:.0%}.",
    )
