"""What the picture of one pass plays: a model that writes on, with a KV cache and without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from serving.written_on import WrittenOn
from ui.widgets.linked import linked

MOST_NEW = 12
FIRST_NEW = 6  # of the button that lets the model write on
ALL = 50  # a top-k of this many keeps all tokens


@dataclass(frozen=True)
class Wanted:
    """How many new tokens the visitor wants, and how they are drawn. top_k: None keeps all."""

    n_new: int = 0
    temperature: float = 1.0
    top_k: int | None = None


def settings(role: str) -> Wanted:
    """The settings of a model that writes; an encoder has none."""
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
        help=f"{ALL}: the next token is drawn from the whole vocabulary.",
    )
    n_new = linked(
        st.slider,
        "New tokens",
        0,
        MOST_NEW,
        0,
        key="one_pass_new",
        help="So many tokens the model writes after the text; the picture has a button for it.",
    )
    return Wanted(n_new, temperature, None if top_k == ALL else top_k)


def header(wanted: Wanted, written: WrittenOn | None) -> dict[str, Any]:
    """What the picture is told of the settings, and of the passes that it plays."""
    return {
        "temperature": wanted.temperature,
        "topK": wanted.top_k or ALL,
        "play": None if written is None else played(written),
    }


def played(written: WrittenOn) -> dict[str, Any]:
    """The passes as the picture plays them; of each pair the first is that with the cache.

    A multiplication is one multiply and its add, of the matrix products.
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
