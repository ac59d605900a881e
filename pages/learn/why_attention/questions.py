"""Quiz questions of the page "Why attention"."""

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
from pages.learn.why_attention.readout import readout, recovered_dimensions
from ui.text.formatting import format_number
from ui.widgets.questions import Question, nearest_choice


def questions() -> list[Question]:
    """Build three questions whose answers are computed with the page's functions."""
    short, long = (
        reach(_example_setup(length, hold=0.0)).numbers for length in (8, 64)
    )  # (sentence, state)
    sizes = {"8 times as many": 8.0, "the same number": 1.0, "twice as many": 2.0}
    grown = nearest_choice(long[1] / short[1], sizes)

    shares = growth(_example_setup(64, hold=0.0))
    left = float(shares[GRU][LENGTHS.index(32)])
    parts = {"about an equal share": 1.0, "about a tenth": 0.1, "less than a thousandth": 1e-5}
    faded = nearest_choice(
        np.log(left), {name: float(np.log(part)) for name, part in parts.items()}
    )

    held = float(growth(_example_setup(64, hold=5.0))[GRU][LENGTHS.index(32)])
    before, after = (recovered_dimensions(readout(16, 32, hold, 0), 16) for hold in (0.0, 5.0))
    changes = {"more": 2.0, "about the same number": 1.0, "fewer": 0.5}
    change = nearest_choice(
        np.log(after / before), {name: float(np.log(c)) for name, c in changes.items()}
    )
    return [
        Question(
            prompt="A sentence grows from 8 to 64 tokens. How many numbers does the GRU's "
            "decoder get "
            "now, compared to before?",
            right=grown[0],
            wrong=grown[1],
            explanation=f"The short sentence's {short[0]} numbers had to fit into {short[1]}. Now "
            f"{long[0]} numbers have to fit into {long[1]}.",
        ),
        Question(
            prompt="An untrained GRU reads 32 tokens. How much does token 0 influence the last "
            "state, "
            "compared to an equal share?",
            right=faded[0],
            wrong=faded[1],
            explanation=f"Its influence is {format_number(left, '.1e')} of an equal share. In "
            "attention it's "
            f"{float(shares[ATTENTION][LENGTHS.index(32)]):.2f}.",
        ),
        Question(
            prompt=f"Hold = 5 raises that share to {held:.2f}. How many dimensions of the sentence "
            "can a linear reader recover from the state now, compared to before?",
            right=change[0],
            wrong=change[1],
            explanation=f"It's {after:.1f} now and was {before:.1f} before, for a state of 32 "
            "numbers. "
            "A state that keeps more of the old words takes in less of the new ones.",
        ),
    ]


def _example_setup(n_tokens: int, *, hold: float) -> InfluenceSetup:
    words: Sequence[str] = [f"word{place}" for place in range(n_tokens)]
    return InfluenceSetup(tuple(words), False, 16, 32, hold, TRAINABLE, 0)
