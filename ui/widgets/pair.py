"""The sliders that choose a query and a key of a head."""

from __future__ import annotations

import streamlit as st

from serving import visit
from serving.runs import Run
from ui.widgets import controls, head_picture
from ui.widgets.controls import HeadChoice
from ui.widgets.visit import current


def choose_pair(run: Run, choice: HeadChoice, prefix: str) -> tuple[int, int]:
    """The query and the key to look at: two sliders, which a click on a map may move.

    At first the visit's pair, if it is one of this text; else the one with the largest weight
    between two ordinary tokens of this head. So it is again for another text, or a model that cuts
    it in another way; but the numbers that a visitor chose for another text stay.
    """
    tokens, visited, state = run.tokens, current(), st.session_state
    keys, held = (f"{prefix}_query", f"{prefix}_key"), f"{prefix}_cut"
    strongest = dict(zip(keys, head_picture.strongest(run, choice), strict=True))
    spans = dict(enumerate(tokens.spans))
    both = visited.pair(tokens.text, spans, lambda: [state.get(*of) for of in strongest.items()])
    for key, part in zip(keys, both, strict=True):
        if visited.is_seen(key) and state[held] != (tokens.text, tokens.spans):
            if visit.PAIR in visited.chosen and part.brought is None:
                visited.given(key, None)  # chosen for this text too
            else:
                state[key] = strongest[key] if part.brought is None else part.brought
                visited.given(key, state[key])
    state[held] = tokens.text, tokens.spans
    with st.container(horizontal=True, gap="medium"):
        query, key = (
            controls.number(label, key, len(tokens), strongest[key], part=part)
            for label, key, part in zip(("Query (row)", "Key (column)"), keys, both, strict=True)
        )
    return query, key
