"""Pickers that pages share. Their state is in the address: keys are prefixed by the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pretrained import CatalogEntry, ModelSpec, Tokens
from serving import heads, models, runs
from serving.content_words import same_word
from serving.limits import MAX_SEED, MAX_TEXT_CHARACTERS
from ui.canvas.component import about
from ui.widgets.head_choice import HeadChoice
from ui.widgets.linked import linked
from ui.widgets.visit import VisitPart, current, overlapping

ANIMAL = "The animal didn't cross the street because it was too tired"
ARTIST = "the artist painted the portrait of a woman with a brush"
GOVERNMENT = "The government should regulate free speech."
NEXT_DAY = "The next day is bright"

SENTENCES = (ANIMAL, ARTIST, GOVERNMENT, NEXT_DAY)  # the lectures' own

AUTOMATIC, LINEAR, SQUARE_ROOT, WHOLE = "automatic", "linear", "square root", "linear, 0 to 1"


def row(
    *widths: int, align: Literal["top", "bottom"] = "top"
) -> tuple[DeltaGenerator, DeltaGenerator]:
    """The row above a picture: places for text and for settings; "bottom" if those have labels.

    Without widths, a sentence of 60 characters fits the place for text on a laptop.
    """
    left, right = st.columns(widths or [3, 2], gap="small", vertical_alignment=align)
    return left, right.container(horizontal=True, vertical_alignment="bottom", gap="small")


def text(
    label: str,
    key: str,
    default: str,
    *,
    examples: Iterable[str] = SENTENCES,
    use: Callable[[str], None] | None = None,
    disabled: bool = False,
) -> str:
    """A line of text that Enter applies, and a menu of examples.

    use: what takes the chosen example; without it, the example becomes the text.
    """

    def take(chosen: str) -> None:
        st.session_state[key] = chosen

    with st.container(horizontal=True, vertical_alignment="bottom", key=f"{key}_line"):
        typed: str = linked(
            st.text_input,
            label,
            default,
            key=key,
            max_chars=MAX_TEXT_CHARACTERS,
            disabled=disabled,
            label_visibility="collapsed",
            part="text",
        )
        menu_of_examples(examples, f"{key}_example", use or take, disabled=disabled)
    about()["sentence"] = typed
    return typed


def menu_of_examples(
    names: Iterable[str], key: str, use: Callable[[str], None], *, disabled: bool = False
) -> None:
    """A menu whose chosen entry `use` takes before the page runs again; none without entries."""

    def take() -> None:
        use(st.session_state[key])

    if entries := list(names):
        st.menu_button("Examples", entries, key=key, on_click=take, disabled=disabled)


def model(key: str, role: str | None, *, prefer: str, of_visit: bool = True) -> CatalogEntry:
    """A picker of the ready models of a role (None: any); first `models.preferred(prefer)`.

    It shows their titles; links may say their names. of_visit: not a second one beside it.
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
        format_func=models.title,
        on_change=_clamp_numbers,
        args=(key, {name: entry.spec for name, entry in by_name.items()}),
        label_visibility="collapsed",
        part="model" if of_visit else None,
    )
    wanted = current().model
    others = {entry.spec.name: entry.spec.title for entry in models.ready()}
    if of_visit and wanted in others and wanted not in names:
        st.markdown(f":small[{others[wanted]} writes no text: another model runs here.]")
    if of_visit:
        about().update(model=by_name[chosen].spec.title, name=chosen)
    return by_name[chosen]


def head(key: str, *, prefer: str, text: str, of_visit: bool = True) -> HeadChoice:
    """Choose a model, a layer and a head: widgets whose keys begin with `key`; see `model`."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        entry = model(f"{key}_model", None, prefer=prefer, of_visit=of_visit)
        return head_of_text(entry, key, text, of_visit=of_visit, width=100)


def head_of_text(
    entry: CatalogEntry,
    key: str,
    text: str,
    *,
    of_visit: bool = True,
    width: int | Literal["stretch"] = "stretch",
) -> HeadChoice:
    """Choose a layer and a head; at first those that show most of a text (`heads.first_head`).

    A text that the model cannot take has the first head of the middle layer: the page says why.
    """
    try:
        first = heads.first_head(runs.run(entry.spec.name, text))
    except models.LOAD_ERRORS:
        first = heads.HeadId(entry.spec.n_layers // 2, 0)
    return first_head_of(entry, key, first, of_visit=of_visit, width=width)


def first_head_of(
    entry: CatalogEntry,
    key: str,
    first: heads.HeadId,
    *,
    of_visit: bool = True,
    width: int | Literal["stretch"] = "stretch",
) -> HeadChoice:
    """Choose a layer and a head, at first the given ones; otherwise as `head`.

    Nobody chose those that another text had at first, so those of this text replace them.
    """
    state, keys, before = st.session_state, (f"{key}_layer", f"{key}_head"), f"{key}_first_head"
    if before in state and tuple(map(state.get, keys)) == state[before]:
        state[keys[0]], state[keys[1]] = first.layer, first.head
    state[before] = (first.layer, first.head)
    layer, number = first.layer, first.head
    return head_of(entry, key, layer=layer, head=number, of_visit=of_visit, width=width)


def head_of(
    entry: CatalogEntry,
    key: str,
    *,
    layer: int,
    head: int,
    of_visit: bool = True,
    width: int | Literal["stretch"] = "stretch",
) -> HeadChoice:
    """Choose a layer and a head of a model, the given ones at first; otherwise as `head`."""
    layers, heads = ("layer", "head") if of_visit else (None, None)
    spec = entry.spec
    return HeadChoice(
        entry,
        number("Layer", f"{key}_layer", spec.n_layers, layer, part=layers, width=width),
        number("Head", f"{key}_head", spec.n_heads, head, part=heads, width=width),
    )


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


def temperature(key: str, *, help: str) -> float:
    """A slider for the temperature of a generation; 0 always takes the likeliest token."""
    chosen: float = linked(st.slider, "Temperature", 0.0, 2.0, 0.0, 0.05, key=key, help=help)
    return chosen


def seed(
    label: str,
    key: str,
    default: int,
    *,
    disabled: bool = False,
    help: str = "",
    width: int | Literal["stretch"] = "stretch",
) -> int:
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
        width=width,
    )
    return round(chosen)


def _clamp_numbers(key: str, specs: dict[str, ModelSpec]) -> None:
    """A layer or head that the newly chosen model does not have becomes its last one.

    In a callback, so that the address gets the new number too.
    """
    spec = specs.get(st.session_state[key])
    if spec is None:  # no browser sends a model that is not in its list
        return
    stem = key.removesuffix("_model")
    for name, count in ((f"{stem}_layer", spec.n_layers), (f"{stem}_head", spec.n_heads)):
        if st.session_state.get(name, 0) >= count:
            st.session_state[name] = count - 1


def number(
    label: str,
    key: str,
    count: int,
    default: int,
    help: str = "",
    *,
    least: int = 0,
    part: str | VisitPart | None = None,
    width: int | Literal["stretch"] = "stretch",
) -> int:
    """A slider over `least` .. count - 1; `part` as in `linked`, `width` in CSS pixels.

    A slider over options: it stays the same widget when `count` changes, and so keeps its value and
    its place in the address. A plain slider would start anew.
    """
    largest = count - 1
    if st.session_state.get(key, 0) > largest:  # the chosen model itself is gone
        st.session_state[key] = largest
    chosen: int = linked(
        st.select_slider,
        label,
        range(least, count),
        min(default, largest),
        key=key,
        help=help or None,
        disabled=largest == least,
        part=part,
        width=width,
    )
    return chosen


def token(label: str, key: str, tokens: Tokens, default: int) -> int:
    """A slider over the tokens of a text; in another text it stays at the same word."""
    state, of, text = st.session_state, f"{key}_of", (tokens.text, tokens.spans)
    before = state.get(of)
    if before not in (None, text) and key in state:
        span = same_word(before[0], before[1][state[key]], tokens.text)
        place = span and overlapping(span, enumerate(tokens.spans))
        state[key] = default if place is None else place
    state[of] = text
    return number(label, key, len(tokens), default)


def window(key: str, n_tokens: int, most: int, as_what: str = "") -> int:
    """The first of `most` tokens that a page takes of a longer text; a slider moves it along.

    as_what: what they are taken for.
    """
    if n_tokens <= most:
        return 0
    first = number("First token that is shown", key, n_tokens - most + 1, 0)
    taken = f", {as_what}" if as_what else ""
    st.markdown(f":small[Tokens {first} to {first + most - 1} of your {n_tokens}{taken}.]")
    return first
