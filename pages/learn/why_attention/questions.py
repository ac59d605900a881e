"""The questions of the page "Why attention", answered by its own functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pages.learn.why_attention.influence import (
    ATTENTION,
    GRU,
    LENGTHS,
    TRAINABLE,
    InfluenceSetup,
    growth,
    reach,
)
from pages.learn.why_attention.reading import reading, recovered
from ui.text.number_text import written
from ui.widgets.questions import Question, nearest


def questions() -> list[Question]:
    """Three questions; what is right is computed from the same functions as the page."""
    short, long = (
        reach(_made_up(length, hold=0.0)).numbers for length in (8, 64)
    )  # (sentence, state)
    sizes = {"they become 8 times as many": 8.0, "they stay as many": 1.0, "they double": 2.0}
    grown = nearest(long[1] / short[1], sizes)

    shares = growth(_made_up(64, hold=0.0))
    left = float(shares[GRU][LENGTHS.index(32)])
    parts = {"about as much": 1.0, "about a tenth of it": 0.1, "less than a thousandth of it": 1e-5}
    faded = nearest(np.log(left), {name: float(np.log(part)) for name, part in parts.items()})

    held = float(growth(_made_up(64, hold=5.0))[GRU][LENGTHS.index(32)])
    before, after = (recovered(reading(16, 32, hold, 0), 16) for hold in (0.0, 5.0))
    changes = {"more": 2.0, "about as many": 1.0, "fewer": 0.5}
    change = nearest(
        np.log(after / before), {name: float(np.log(c)) for name, c in changes.items()}
    )
    return [
        Question(
            ask="A sentence grows from 8 to 64 tokens. What becomes of the numbers that the GRU's "
            "decoder is given?",
            right=grown[0],
            wrong=grown[1],
            because=f"{short[0]} numbers of the sentence went into {short[1]}; now {long[0]} "
            f"go into {long[1]}.",
        ),
        Question(
            ask="In an untrained GRU with 32 tokens, how much influence on the last state does "
            "token 0 have, compared with an equal share?",
            right=faded[0],
            wrong=faded[1],
            because=f"It has {written(left, '.1e')} of an equal share; attention gives it "
            f"{float(shares[ATTENTION][LENGTHS.index(32)]):.2f}.",
        ),
        Question(
            ask=f"Hold = 5 lifts that share to {held:.2f}. How many dimensions of the sentence "
            "does a linear reader recover from the state now?",
            right=change[0],
            wrong=change[1],
            because=f"{after:.1f} now, {before:.1f} before, of a state of 32 numbers. What keeps "
            "the old lets in little of the new: an equal share of almost nothing.",
        ),
    ]


def _made_up(n_tokens: int, *, hold: float) -> InfluenceSetup:
    words: Sequence[str] = [f"word{place}" for place in range(n_tokens)]
    return InfluenceSetup(tuple(words), False, 16, 32, hold, TRAINABLE, 0)
