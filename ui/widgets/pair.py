"""Sliders for a query and a key of a head."""

from __future__ import annotations

import streamlit as st

from serving.heads import strongest_tokens
from serving.runs import Run
from ui.widgets import controls
from ui.widgets.head_choice import HeadChoice
from ui.widgets.visit import pair_parts, revalidate


def choose_pair(
    run: Run,
    choice: HeadChoice,
    prefix: str,
    labels: tuple[str, str] = ("Query (row)", "Key (column)"),
    causal: bool = False,
) -> tuple[int, int]:
    """Show two sliders for a query and a key, and return their positions.

    A click on a map may move the sliders. They start at the visit's pair (in another text, the same
    words), or else at the head's `strongest_tokens` pair.
    """
    tokens, state, cut = run.tokens, st.session_state, f"{prefix}_cut"
    keys = f"{prefix}_query", f"{prefix}_key"
    shown = dict(
        zip(keys, strongest_tokens(run, choice.layer, choice.head, causal=causal), strict=True)
    )
    spans = dict(enumerate(tokens.spans))
    parts = pair_parts(tokens.text, spans, shown)
    if state.get(cut) != (tokens.text, spans):  # the positions now refer to different tokens
        revalidate(shown, parts)
        state[cut] = tokens.text, spans
    with st.container(horizontal=True, gap="medium"):
        query, key = (
            controls.number(label, key, len(tokens), shown[key], part=part, width=100)
            for label, key, part in zip(labels, keys, parts, strict=True)
        )
    return query, key
