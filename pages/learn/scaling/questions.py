"""The questions of the page "Scaling", answered by its own functions."""

from __future__ import annotations

import math

from pages.learn.scaling.softmax import ARTICLE, parse, softmaxes
from pages.learn.scaling.variances import GRADIENT, MEDIAN, N_TOKENS, at, measured
from ui.text.number_text import percent
from ui.widgets.questions import Question, nearest


def questions() -> list[Question]:
    """Three questions; what is right is computed from the same functions as the page."""
    logits = parse(ARTICLE["20, 21.5, 22"])
    before = softmaxes(logits, 1.0).plain
    after = softmaxes([logit + 100 for logit in logits], 1.0).plain
    move = float(after.max() - before.max())
    moves = ["it grows", "it stays the same", "it shrinks"]
    moved = moves[1] if abs(move) < 1e-6 else moves[0 if move > 0 else 2]

    wide = at(0, 256)
    most = math.log(N_TOKENS)
    flat = nearest(
        wide["d_k"].entropy,
        {"near 0": 0.0, "near half of log 32": most / 2, "near log 32": most},
    )
    sizes = {"about the same": 1.0, "about a third": 1 / 3, "less than a hundredth": 1e-3}
    large = at(0, 1024)["nothing"]
    left = nearest(math.log(measured(large, MEDIAN)), {k: math.log(v) for k, v in sizes.items()})
    return [
        Question(
            ask="100 is added to all three logits 20, 21.5 and 22. What happens to the largest "
            f"weight, {before.max():.4f}?",
            right=moved,
            wrong=tuple(name for name in moves if name != moved),
            because=f"It is {after.max():.4f} afterwards: only differences between logits count. "
            "What saturates a softmax is their spread, not their size.",
        ),
        Question(
            ask="q·k over 256 numbers is divided by 256 instead of √256 = 16. Where does the "
            f"entropy of a row over {N_TOKENS} keys end up?",
            right=flat[0],
            wrong=flat[1],
            because=f"{wide['d_k'].entropy:.3f} of log {N_TOKENS} = {most:.3f} nats; "
            f"√d_k gives {wide['√d_k'].entropy:.3f}. The scores became too small to choose with.",
        ),
        Question(
            ask="d_k is 1024 and nothing divides q·k. How much of a uniform row's softmax "
            "gradient does the median row have?",
            right=left[0],
            wrong=left[1],
            because=f"{percent(measured(large, MEDIAN))} of it; the mean row has "
            f"{percent(measured(large, GRADIENT))}. The largest weight is {percent(large.largest)} "
            "on average: the rows are saturated.",
        ),
    ]
