"""The maps of all heads at one moment, drawn in the browser with the score of each."""

from __future__ import annotations

import hashlib
from functools import cache

from pages.learn.watch_heads_form.recording import TOKENS, Moment, Recording
from ui.canvas.component import Canvas, pack

SCORES = ("Previous-token score", "Induction score", "Next-token score")

_canvas = Canvas("forming")


def draw(recording: Recording, moment: Moment, title: str, *, key: str) -> None:
    """Draw the maps of a moment whose weights were kept; `title` says whose run it is."""
    _canvas.draw(pack_maps(recording, moment, title), key=key)


def pack_maps(recording: Recording, moment: Moment, title: str) -> bytes:
    """What the browser receives: a header, then the deflated codes of all maps.

    The score above a head of layer 0 is its previous-token score, above one of layer 1 its
    induction score at unseen distances. Without a mask a head of layer 0 shows its score on the
    next token.
    """
    codes, causal = moment.codes, recording.settings.mask
    assert codes is not None
    first = moment.previous[0] if causal else moment.next[0]
    both = [first, moment.induction[1]]
    n_heads = recording.settings.n_heads
    labels, start, n = probe_tokens()
    diagonal = (1, 0, len(labels) - 1) if causal else (0, 1, len(labels) - 1)
    header = {
        "layers": 2,
        "heads": n_heads,
        "labels": labels,
        "title": title,
        "says": "A row is a token that looks, a column a token looked at. Orange lines: where the "
        "score above the map is read.",
        "causal": causal,
        "levels": codes.levels,
        "largest": list(codes.largest),
        "scores": [float(score) for scores in both for score in scores],
        "best": [layer * n_heads + int(scores.argmax()) for layer, scores in enumerate(both)],
        "scoreNames": [SCORES[0] if causal else SCORES[2], SCORES[1]],
        "wanted": [diagonal, (start + n, start + 1, n)],
        "digest": hashlib.blake2b(codes.deflated, digest_size=6).hexdigest(),
    }
    return pack(header, codes.deflated)


@cache
def probe_tokens() -> tuple[list[str], int, int]:
    """The tokens of the probe, where its first copy begins, and how far behind the repeat lies."""
    from pages.learn.watch_heads_form.experiment.sequences import probe

    repeats = probe()
    labels = [TOKENS[token] for token in repeats.ids[0].tolist()]
    return labels, int(repeats.starts[0]), int(repeats.distances[0])
