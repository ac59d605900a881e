"""Attention maps of all heads at one step, each with its score."""

from __future__ import annotations

from functools import cache

from pages.learn.watch_heads_form.recording import TOKENS, Moment, TrainingHistory
from ui.canvas.forming import LayerScores, forming

SCORES = ("Previous-token score", "Induction score", "Next-token score")


def draw(recording: TrainingHistory, moment: Moment, title: str, *, key: str) -> None:
    """Draw the maps of a moment with stored weights.

    Heads of layer 0 show their previous-token score, or without a mask their next-token score.
    Heads of layer 1 show their induction score at unseen distances.
    """
    causal = recording.settings.mask
    assert moment.codes is not None
    labels, start, n = probe_tokens()
    if causal:
        first = LayerScores(SCORES[0], moment.previous[0], (1, 0, len(labels) - 1))
    else:
        first = LayerScores(SCORES[2], moment.next[0], (0, 1, len(labels) - 1))
    second = LayerScores(SCORES[1], moment.induction[1], (start + n, start + 1, n))
    forming(moment.codes, labels, (first, second), title=title, causal=causal, key=key)


@cache
def probe_tokens() -> tuple[list[str], int, int]:
    """The probe's tokens, the start of its first copy, and the distance to the repeat."""
    from pages.learn.watch_heads_form.experiment.sequences import probe

    repeats = probe()
    labels = [TOKENS[token] for token in repeats.ids[0].tolist()]
    return labels, int(repeats.starts[0]), int(repeats.distances[0])
