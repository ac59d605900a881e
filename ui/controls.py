"""Pickers that pages share. Their state is in the address: keys are prefixed by the page."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pretrained import CatalogEntry
from ui import models
from ui.limits import MAX_TEXT_CHARACTERS

ANIMAL = "The animal didn't cross the street because it was too tired"
NEXT_DAY = "The next day is bright"

# The lectures' sentences, by the short names of their buttons.
SENTENCES = {
    "The animal …": ANIMAL,
    "the artist …": "the artist painted the portrait of a woman with a brush",
    "The government …": "The government should regulate free speech.",
    "The next day …": NEXT_DAY,
}


@dataclass(frozen=True)
class HeadChoice:
    """One head of one model."""

    entry: CatalogEntry
    layer: int
    head: int

    @property
    def title(self) -> str:
        """How the head is named on screen."""
        return f"{self.entry.spec.title}, layer {self.layer}, head {self.head}"


def text(label: str, key: str, default: str, *, height: int = 80) -> str:
    """A text box with the lectures' sentences as presets below it."""

    def use_preset() -> None:
        chosen = st.session_state[f"{key}_preset"]
        if chosen is not None:
            st.session_state[key] = SENTENCES[chosen]
            st.session_state[f"{key}_preset"] = None

    typed = st.text_area(
        label,
        value=default,
        key=key,
        height=height,
        max_chars=MAX_TEXT_CHARACTERS,
        bind="query-params",
    )
    st.pills(
        "Or take a sentence from the lectures",
        list(SENTENCES),
        key=f"{key}_preset",
        on_change=use_preset,
        wrap=True,
    )
    return typed


def model(label: str, key: str, entries: list[CatalogEntry], default: str) -> CatalogEntry:
    """Choose one of the models that are ready."""
    by_name = {entry.spec.name: entry for entry in entries}
    names = list(by_name)
    chosen = st.selectbox(
        label,
        names,
        index=names.index(default) if default in names else 0,
        format_func=lambda name: by_name[name].spec.title,
        key=key,
        bind="query-params",
    )
    return by_name[chosen]


def head(page: str, which: str, *, role: str, layer: int, head: int) -> HeadChoice:
    """Choose a model, a layer and a head; the first choice is the preferred model of `role`."""
    key = f"{page}_{which}"
    entries = models.ready()
    default = models.preferred(role) or entries[0].spec.name
    entry = model("Model", f"{key}_model", entries, default)
    left, right = st.columns(2)
    with left:
        chosen_layer = _number("Layer", f"{key}_layer", entry.spec.n_layers, layer)
    with right:
        chosen_head = _number("Head", f"{key}_head", entry.spec.n_heads, head)
    return HeadChoice(entry, chosen_layer, chosen_head)


def _number(label: str, key: str, count: int, default: int) -> int:
    """A slider over 0 .. count - 1 that survives a change of `count`."""
    largest = count - 1
    # a value that the new model does not have becomes its last one
    if st.session_state.get(key, 0) > largest:
        st.session_state[key] = largest
    # a slider needs two ends: a model with one layer gets a slider that cannot be moved
    return st.slider(
        label,
        0,
        max(largest, 1),
        min(default, largest),
        key=key,
        bind="query-params",
        disabled=largest == 0,
    )
