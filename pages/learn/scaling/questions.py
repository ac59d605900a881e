"""Quiz questions of the page "Scaling"."""

from __future__ import annotations

import math

from pages.learn.scaling.softmax import ARTICLE, parse, softmaxes
from pages.learn.scaling.variances import GRADIENT, MEDIAN, N_TOKENS, at_d_k, row_value
from ui.text.formatting import percent
from ui.widgets.questions import Question, nearest_choice


def questions() -> list[Question]:
    """Three questions whose answers are computed by the functions of the page."""
    logits = parse(ARTICLE["20, 21.5, 22"])
    before = softmaxes(logits, 1.0).plain
    after = softmaxes([logit + 100 for logit in logits], 1.0).plain
    move = float(after.max() - before.max())
    moves = ["It grows", "It stays the same", "It shrinks"]
    change = moves[1] if abs(move) < 1e-6 else moves[0 if move > 0 else 2]

    wide = at_d_k(0, 256)
    most = math.log(N_TOKENS)
    flat = nearest_choice(
        wide["d_k"].entropy,
        {"Close to 0": 0.0, "Close to half of log 32": most / 2, "Close to log 32": most},
    )
    sizes = {"About the same": 1.0, "About a third": 1 / 3, "Less than a hundredth": 1e-3}
    large = at_d_k(0, 1024)["nothing"]
    left = nearest_choice(
        math.log(row_value(large, MEDIAN)), {k: math.log(v) for k, v in sizes.items()}
    )
    return [
        Question(
            prompt="You add 100 to each of the logits 20, 21.5 and 22. What happens to the largest "
            f"weight, {before.max():.4f}?",
            right=change,
            wrong=tuple(name for name in moves if name != change),
            explanation=f"Afterwards it's {after.max():.4f}, because only differences between "
            "logits "
            "matter. A softmax saturates if the logits are far apart, not if they're large.",
        ),
        Question(
            prompt="With d_k = 256, you divide q·k by 256 instead of √256 = 16. What's the "
            "entropy of "
            f"a row of weights over {N_TOKENS} keys?",
            right=flat[0],
            wrong=flat[1],
            explanation=f"It's {wide['d_k'].entropy:.3f} nats, and the maximum is log {N_TOKENS} = "
            f"{most:.3f}. With √d_k it's {wide['√d_k'].entropy:.3f}. The scores became so small "
            "that all keys get about the same weight.",
        ),
        Question(
            prompt="With d_k = 1024, q·k isn't divided by anything. How large is the softmax "
            "gradient "
            "of the median row, compared with a uniform row?",
            right=left[0],
            wrong=left[1],
            explanation=f"It's {percent(row_value(large, MEDIAN))} of that of a uniform row, and "
            "the "
            f"mean over all rows is {percent(row_value(large, GRADIENT))}. The rows are saturated: "
            f"their largest weight is {percent(large.largest)} on average.",
        ),
    ]
