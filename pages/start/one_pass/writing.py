"""Playback of a model that continues the text, with and without a KV cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from serving.written_on import WrittenOn
from ui.widgets.linked import linked

MOST_NEW = 12
FIRST_NEW = 6  # new tokens after a click on "Continue writing"
ALL = 50  # this top-k keeps all tokens


@dataclass(frozen=True)
class Wanted:
    """The selected number of new tokens and their sampling. top_k: None keeps all tokens."""

    n_new: int = 0
    temperature: float = 1.0
    top_k: int | None = None


def settings(role: str) -> Wanted:
    """Show the sampling settings of a decoder; an encoder has none."""
    if role != "decoder":
        return Wanted()
    temperature = linked(st.slider, "Temperature", 0.1, 2.0, 1.0, 0.1, key="one_pass_temperature")
    top_k = linked(
        st.slider,
        "Top-k",
        1,
        ALL,
        ALL,
        key="one_pass_top_k",
        help=f"At {ALL}, the next token is drawn from the whole vocabulary.",
    )
    n_new = linked(
        st.slider,
        "New tokens",
        0,
        MOST_NEW,
        0,
        key="one_pass_new",
        help="How many tokens the model adds to the text. The picture has a button for this, too.",
    )
    return Wanted(n_new, temperature, None if top_k == ALL else top_k)


def header(wanted: Wanted, written: WrittenOn | None) -> dict[str, Any]:
    """The settings and passes as the picture expects them."""
    return {
        "temperature": wanted.temperature,
        "topK": wanted.top_k or ALL,
        "play": None if written is None else played(written),
    }


def played(written: WrittenOn) -> dict[str, Any]:
    """The passes that the picture plays; in each pair, the first is the cached one.

    products: multiply-adds in matrix products.
    """
    steps = zip(written.cached, written.uncached, written.choices, strict=True)
    return {
        "prompt": written.n_prompt,
        "passes": [
            {
                "rows": [cached.n_new, uncached.n_new],
                "products": [cached.flops // 2, uncached.flops // 2],
                "seconds": [cached.seconds, uncached.seconds],
                "next": list(choices.tokens),
                "shares": list(choices.probabilities),
                "chosen": choices.chosen,
            }
            for cached, uncached, choices in steps
        ],
    }
