"""Quiz questions of the page "Watch heads form", answered by its stored runs."""

from __future__ import annotations

from pages.learn.watch_heads_form import maps, stored
from pages.learn.watch_heads_form.recording import BLIND_GUESS
from serving.cache import cached
from ui.widgets.questions import Question, nearest_choice


@cached(key=lambda: "watch_heads_form")
def questions() -> list[Question]:
    """Build three questions: where an induction head looks, fixed distances, and the mask."""
    return [_looks(), _trap(), _mask()]


def _looks() -> Question:
    labels, start, n = maps.probe_tokens()
    token, before, behind = labels[start + 1], labels[start], labels[start + 2]
    return Question(
        prompt=f"In the sequence `{' '.join(labels[start : start + 4])} …`, the token `{token}` "
        "appears again later. From there, which token does an induction head attend to?",
        right=f"`{behind}`, the token after the first `{token}`",
        wrong=(f"the first `{token}`", f"`{before}`, the token before the first `{token}`"),
        explanation=f"It attends to position {start + 2} and copies `{behind}` as its prediction "
        "for "
        "the next token.",
    )


def _trap() -> Question:
    run = stored.stored().runs["the same distance every time"].moments[-1]
    right, wrong = nearest_choice(
        run.loss_unseen,
        {
            "almost 0, as in training": 0.0,
            "the same as a blind guess": BLIND_GUESS,
            "much larger than a blind guess": 3 * BLIND_GUESS,
        },
    )
    return Question(
        prompt="A model is trained on repeats that always come 12 tokens later. How large is its "
        "loss "
        "if they come 9, 13, 17 or 21 tokens later?",
        right=right,
        wrong=wrong,
        explanation=f"In the stored run, the loss is {run.loss_trained:.2f} at the trained "
        "distance "
        f"but {run.loss_unseen:.2f} at the others, because the model confidently predicts the "
        f"wrong token. A blind guess has a loss of {BLIND_GUESS:.2f}.",
    )


def _mask() -> Question:
    run = stored.stored().runs["mask off"].moments[-1]
    right, wrong = nearest_choice(
        run.loss_writing - run.loss_unseen,
        {"It stays the same": 0.0, "It rises": BLIND_GUESS, "It falls": -BLIND_GUESS},
    )
    return Question(
        prompt="A model was trained without a mask. What happens to its loss when it has to "
        "write, so "
        "the next token doesn't exist yet?",
        right=right,
        wrong=wrong,
        explanation=f"In the stored run it goes from {run.loss_unseen:.2f} to "
        f"{run.loss_writing:.2f}, "
        "because the model had only learned to peek at the answer.",
    )
