"""Playback of a model that continues the text, with and without a KV cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from serving.continuation import TextContinuation
from ui.widgets.linked import linked

MAX_NEW = 12
DEFAULT_NEW = 6  # new tokens after a click on "Continue writing"
ALL = 50  # this top-k keeps all tokens


@dataclass(frozen=True)
class WritingSettings:
    """The selected number of new tokens and their sampling. top_k: None keeps all tokens."""

    n_new: int = 0
    temperature: float = 1.0
    top_k: int | None = None


def settings(role: str) -> WritingSettings:
    """Show the sampling settings of a decoder; an encoder has none."""
    if role != "decoder":
        return WritingSettings()
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
        MAX_NEW,
        0,
        key="one_pass_new",
        help="How many tokens the model adds to the text. The picture has a button for this, too.",
    )
    return WritingSettings(n_new, temperature, None if top_k == ALL else top_k)


def header(writing: WritingSettings, continuation: TextContinuation | None) -> dict[str, Any]:
    """The settings and passes as the picture expects them."""
    return {
        "temperature": writing.temperature,
        "topK": writing.top_k or ALL,
        "play": None if continuation is None else playback(continuation),
    }


def playback(continuation: TextContinuation) -> dict[str, Any]:
    """The passes that the picture plays; in each pair, the first is the cached one.

    products: multiply-adds in matrix products.
    """
    steps = zip(continuation.cached, continuation.uncached, continuation.choices, strict=True)
    return {
        "prompt": continuation.n_prompt,
        "passes": [
            {
                "rows": [cached.n_new, uncached.n_new],
                "products": [cached.flops // 2, uncached.flops // 2],
                "seconds": [cached.seconds, uncached.seconds],
                "next": list(choices.tokens),
                "shares": list(choices.probabilities),
                "chosen": choices.selected,
            }
            for cached, uncached, choices in steps
        ],
    }
