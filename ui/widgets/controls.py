"""Pickers that pages share. Their state is in the address: keys are prefixed by the page."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pretrained import CatalogEntry, ModelSpec
from serving import models, visit
from serving.heads import HeadId
from serving.limits import MAX_SEED, MAX_TEXT_CHARACTERS
from ui.widgets.linked import linked
from ui.widgets.visit import current

ANIMAL = "The animal didn't cross the street because it was too tired"
ARTIST = "the artist painted the portrait of a woman with a brush"
GOVERNMENT = "The government should regulate free speech."
NEXT_DAY = "The next day is bright"

# The lectures' sentences, by the short names of their buttons.
SENTENCES = {
    "The animal …": ANIMAL,
    "the artist …": ARTIST,
    "The government …": GOVERNMENT,
    "The next day …": NEXT_DAY,
}


AUTOMATIC, LINEAR, SQUARE_ROOT, WHOLE = "automatic", "linear", "square root", "linear, 0 to 1"


@dataclass(frozen=True)
class HeadChoice:
    """One head of one model."""

    entry: CatalogEntry
    layer: int
    head: int

    @property
    def title(self) -> str:
        """How the head is named on screen."""
        return f"{self.entry.spec.title}, {HeadId(self.layer, self.head)}"


def text(label: str, key: str, default: str, *, height: int = 80, disabled: bool = False) -> str:
    """A text box with the lectures' sentences as presets below it."""

    def use_preset() -> None:
        chosen = st.session_state[f"{key}_preset"]
        if chosen is not None:
            st.session_state[key] = SENTENCES[chosen]
            st.session_state[f"{key}_preset"] = None

    typed: str = linked(
        st.text_area,
        label,
        value=default,
        key=key,
        height=height,
        max_chars=MAX_TEXT_CHARACTERS,
        disabled=disabled,
        part=visit.TEXT,
    )
    st.pills(
        "Or take a sentence from the lectures",
        list(SENTENCES),
        key=f"{key}_preset",
        on_change=use_preset,
        wrap=True,
        disabled=disabled,
    )
    return typed


def model(key: str, role: str | None, *, prefer: str, of_visit: bool = True) -> CatalogEntry:
    """A picker of the ready models of a role (None: any); first the preferred one of `prefer`.

    Models go by their names, which stay the same in links. of_visit: not a second one beside it.
    """
    by_name = {entry.spec.name: entry for entry in models.ready(role)}
    names = list(by_name)
    default = models.preferred(prefer)
    chosen: str = linked(
        st.selectbox,
        "Model",
        names,
        index=names.index(default) if default in names else 0,
        key=key,
        on_change=_clamp_numbers,
        args=(key, {name: entry.spec for name, entry in by_name.items()}),
        part=visit.MODEL if of_visit else None,
    )
    wanted = current().chosen.get(visit.MODEL)
    others = {entry.spec.name: entry.spec.title for entry in models.ready()}
    if of_visit and wanted in others and wanted not in names:
        st.markdown(f":small[{others[wanted]} writes no text: another model runs here.]")
    return by_name[chosen]


def head(key: str, *, prefer: str, layer: int, head: int, of_visit: bool = True) -> HeadChoice:
    """Choose a model, a layer and a head: widgets whose keys begin with `key`; see `model`."""
    entry = model(f"{key}_model", None, prefer=prefer, of_visit=of_visit)
    left, right = st.columns(2)
    layers, heads = (visit.LAYER, visit.HEAD) if of_visit else (None, None)
    with left:
        chosen_layer = number("Layer", f"{key}_layer", entry.spec.n_layers, layer, part=layers)
    with right:
        chosen_head = number("Head", f"{key}_head", entry.spec.n_heads, head, part=heads)
    return HeadChoice(entry, chosen_layer, chosen_head)


def colours(key: str) -> str:
    """A picker of how weights become colours: AUTOMATIC, LINEAR, SQUARE_ROOT or WHOLE."""
    chosen: str = linked(
        st.selectbox,
        "Colours",
        [AUTOMATIC, LINEAR, SQUARE_ROOT, WHOLE],
        key=key,
        help="Linear colours run from 0 to the largest weight shown. The square root makes small "
        "weights visible; automatic takes it for long texts.",
    )
    return chosen


def seed(label: str, key: str, default: int, *, disabled: bool = False, help: str = "") -> int:
    """A box for a whole number from 0 to MAX_SEED.

    The widget holds floats: with whole numbers, Streamlit fails on a link that says 1e400.
    """
    chosen: float = linked(
        st.number_input,
        label,
        0.0,
        float(MAX_SEED),
        float(default),
        1.0,
        format="%.0f",
        key=key,
        disabled=disabled,
        help=help or None,
    )
    return round(chosen)


def _clamp_numbers(key: str, specs: dict[str, ModelSpec]) -> None:
    """A layer or head that the newly chosen model does not have becomes its last one.

    In a callback, so that the address gets the new number too.
    """
    spec = specs[st.session_state[key]]
    stem = key.removesuffix("_model")
    for name, count in ((f"{stem}_layer", spec.n_layers), (f"{stem}_head", spec.n_heads)):
        if st.session_state.get(name, 0) >= count:
            st.session_state[name] = count - 1


def number(
    label: str, key: str, count: int, default: int, help: str = "", *, part: str | None = None
) -> int:
    """A slider over 0 .. count - 1; `part` as in `linked`.

    A slider over options: it stays the same widget when `count` changes, and so keeps its value and
    its place in the address. A plain slider would start anew.
    """
    largest = count - 1
    if st.session_state.get(key, 0) > largest:  # the chosen model itself is gone
        st.session_state[key] = largest
    chosen: int = linked(
        st.select_slider,
        label,
        range(count),
        min(default, largest),
        key=key,
        help=help or None,
        disabled=largest == 0,
        part=part,
    )
    return chosen
