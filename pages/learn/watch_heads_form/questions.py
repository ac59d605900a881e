"""The questions of the page "Watch heads form", answered by its stored runs and its sequences."""

from __future__ import annotations

from pages.learn.watch_heads_form import maps, stored
from pages.learn.watch_heads_form.recording import BLIND_GUESS
from serving.cache import cached
from ui.widgets.questions import Question, nearest


@cached(key=lambda: "watch_heads_form")
def questions() -> list[Question]:
    """Three questions: where an induction head looks, the trap, and the mask."""
    return [_looks(), _trap(), _mask()]


def _looks() -> Question:
    labels, start, n = maps.probe_tokens()
    token, before, behind = labels[start + 1], labels[start], labels[start + 2]
    return Question(
        ask=f"In the sequence `{' '.join(labels[start : start + 4])} …` the token `{token}` comes "
        "again later. At which token does an induction head look from there?",
        right=f"`{behind}`, the token after the first `{token}`",
        wrong=(f"the first `{token}`", f"`{before}`, the token before the first `{token}`"),
        because=f"It looks at position {start + 2} of the probe, and copies `{behind}` as its "
        "guess for what comes next.",
    )


def _trap() -> Question:
    run = stored.stored().runs["the same distance every time"].moments[-1]
    right, wrong = nearest(
        run.loss_unseen,
        {
            "almost 0, as in training": 0.0,
            "that of a blind guess": BLIND_GUESS,
            "far above that of a blind guess": 3 * BLIND_GUESS,
        },
    )
    return Question(
        ask="A model is trained on repeats that always come 12 tokens later. How large is its loss "
        "where they come 9, 13, 17 or 21 tokens later?",
        right=right,
        wrong=wrong,
        because=f"The stored run has {run.loss_trained:.2f} in training and {run.loss_unseen:.2f} "
        f"there; a blind guess costs {BLIND_GUESS:.2f}. It is sure of a wrong token.",
    )


def _mask() -> Question:
    run = stored.stored().runs["mask off"].moments[-1]
    right, wrong = nearest(
        run.loss_writing - run.loss_unseen,
        {"It stays as it is": 0.0, "It grows": BLIND_GUESS, "It falls": -BLIND_GUESS},
    )
    return Question(
        ask="A model was trained without the mask. What happens to its loss when it has to write, "
        "and the next token is not there yet?",
        right=right,
        wrong=wrong,
        because=f"In the stored run it goes from {run.loss_unseen:.2f} to {run.loss_writing:.2f}: "
        "the model had only learned to read the answer.",
    )
