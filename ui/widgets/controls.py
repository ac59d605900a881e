"""Shared input widgets. Their values are in the page's address, so keys start with its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pretrained import CatalogEntry, ModelSpec, Tokens
from serving import heads, models, runs
from serving.content_words import same_word
from serving.limits import MAX_SEED, MAX_TEXT_CHARACTERS
from ui.canvas.component import picture_caption
from ui.widgets.head_choice import HeadChoice
from ui.widgets.linked import linked
from ui.widgets.visit import VisitPart, current, find_overlapping

ANIMAL = "The animal didn't cross the street because it was too tired"
ARTIST = "the artist painted the portrait of a woman with a brush"
GOVERNMENT = "The government should regulate free speech."
NEXT_DAY = "The next day is bright"

SENTENCES = (ANIMAL, ARTIST, GOVERNMENT, NEXT_DAY)  # from the lectures

AUTOMATIC, LINEAR, SQUARE_ROOT, WHOLE = "automatic", "linear", "square root", "linear, 0 to 1"


def row(
    *widths: int, align: Literal["top", "bottom"] = "top"
) -> tuple[DeltaGenerator, DeltaGenerator]:
    """The row above a picture: a column for text and one for settings.

    align: "bottom" if the settings have labels. With the default widths, a sentence of 60
    characters fits into the text column on a laptop.
    """
    left, right = st.columns(widths or [3, 2], gap="small", vertical_alignment=align)
    return left, right.container(horizontal=True, vertical_alignment="bottom", gap="small")


def text(
    label: str,
    key: str,
    default: str,
    *,
    examples: Iterable[str] = SENTENCES,
    on_select: Callable[[str], None] | None = None,
    disabled: bool = False,
) -> str:
    """A text field that Enter applies, and a menu of examples.

    on_select: called with the selected example; by default, the example becomes the text.
    """

    def take(choice: str) -> None:
        st.session_state[key] = choice

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
        example_menu(examples, f"{key}_example", on_select or take, disabled=disabled)
    picture_caption()["sentence"] = typed
    return typed


def example_menu(
    names: Iterable[str], key: str, on_select: Callable[[str], None], *, disabled: bool = False
) -> None:
    """A menu that calls `on_select` with the selected entry before the rerun; hidden if empty."""

    def take() -> None:
        on_select(st.session_state[key])

    if entries := list(names):
        st.menu_button("Examples", entries, key=key, on_click=take, disabled=disabled)


def model(key: str, role: str | None, *, prefer: str, from_visit: bool = True) -> CatalogEntry:
    """A select box for the ready models of a role (None: all); default `models.preferred(prefer)`.

    The box shows the models' titles; links may contain their names. from_visit: whether it reads
    and sets the visit's model; False for a second select box on the same page.
    """
    by_name = {entry.spec.name: entry for entry in models.available(role)}
    names = list(by_name)
    default = models.preferred(prefer)
    choice: str = linked(
        st.selectbox,
        "Model",
        names,
        index=names.index(default) if default in names else 0,
        key=key,
        format_func=models.title,
        on_change=_clamp_numbers,
        args=(key, {name: entry.spec for name, entry in by_name.items()}),
        label_visibility="collapsed",
        part="model" if from_visit else None,
    )
    wanted = current().model
    others = {entry.spec.name: entry.spec.title for entry in models.available()}
    if from_visit and wanted in others and wanted not in names:
        st.markdown(f":small[{others[wanted]} can't write text, so another model is used.]")
    if from_visit:
        picture_caption().update(model=by_name[choice].spec.title, name=choice)
    return by_name[choice]


def head(key: str, *, prefer: str, text: str, from_visit: bool = True) -> HeadChoice:
    """Widgets for a model, a layer and a head; their keys start with `key`. See `model`."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        entry = model(f"{key}_model", None, prefer=prefer, from_visit=from_visit)
        return head_for_text(entry, key, text, from_visit=from_visit, width=100)


def head_for_text(
    entry: CatalogEntry,
    key: str,
    text: str,
    *,
    from_visit: bool = True,
    width: int | Literal["stretch"] = "stretch",
) -> HeadChoice:
    """Widgets for a layer and a head. The default is the text's `heads.first_head`.

    If the model can't process the text, the default is the first head of the middle layer, and the
    page explains the problem.
    """
    try:
        first = heads.first_head(runs.run(entry.spec.name, text))
    except models.LOAD_ERRORS:
        first = heads.HeadId(entry.spec.n_layers // 2, 0)
    return default_head(entry, key, first, from_visit=from_visit, width=width)


def default_head(
    entry: CatalogEntry,
    key: str,
    first: heads.HeadId,
    *,
    from_visit: bool = True,
    width: int | Literal["stretch"] = "stretch",
) -> HeadChoice:
    """Widgets for a layer and a head that default to `first`; see `head`.

    If the widgets still show the default of an earlier text, the default of this text replaces it.
    """
    state, keys, before = st.session_state, (f"{key}_layer", f"{key}_head"), f"{key}_first_head"
    if before in state and tuple(map(state.get, keys)) == state[before]:
        state[keys[0]], state[keys[1]] = first.layer, first.head
    state[before] = (first.layer, first.head)
    layer, number = first.layer, first.head
    return model_head(entry, key, layer=layer, head=number, from_visit=from_visit, width=width)


def model_head(
    entry: CatalogEntry,
    key: str,
    *,
    layer: int,
    head: int,
    from_visit: bool = True,
    width: int | Literal["stretch"] = "stretch",
) -> HeadChoice:
    """Widgets for a layer and a head of a model, with the given defaults; see `head`."""
    layers, heads = ("layer", "head") if from_visit else (None, None)
    spec = entry.spec
    return HeadChoice(
        entry,
        number("Layer", f"{key}_layer", spec.n_layers, layer, part=layers, width=width),
        number("Head", f"{key}_head", spec.n_heads, head, part=heads, width=width),
    )


def colours(key: str) -> str:
    """A select box for the color scale of weights: AUTOMATIC, LINEAR, SQUARE_ROOT or WHOLE."""
    choice: str = linked(
        st.selectbox,
        "Colors",
        [AUTOMATIC, LINEAR, SQUARE_ROOT, WHOLE],
        key=key,
        help="The linear scale runs from 0 to the largest weight shown. The square root makes "
        "small weights easier to see. Automatic uses the square root for long texts.",
    )
    return choice


def temperature(key: str, *, help: str) -> float:
    """A slider for the sampling temperature; 0 always picks the most likely token."""
    choice: float = linked(st.slider, "Temperature", 0.0, 2.0, 0.0, 0.05, key=key, help=help)
    return choice


def seed(
    label: str,
    key: str,
    default: int,
    *,
    disabled: bool = False,
    help: str = "",
    width: int | Literal["stretch"] = "stretch",
) -> int:
    """A number field for an integer from 0 to MAX_SEED.

    The widget uses floats, because Streamlit's integer widget fails on a link with 1e400.
    """
    choice: float = linked(
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
    return round(choice)


def _clamp_numbers(key: str, specs: dict[str, ModelSpec]) -> None:
    """Reset a layer or head that the newly selected model doesn't have to its last layer or head.

    This runs in a callback, so that the address is updated, too.
    """
    spec = specs.get(st.session_state[key])
    if spec is None:  # not a browser: those only send models from the list
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
    minimum: int = 0,
    part: str | VisitPart | None = None,
    width: int | Literal["stretch"] = "stretch",
) -> int:
    """A slider from `minimum` to `count - 1`. part: see `linked`; width: CSS pixels.

    It's a slider over options, because such a slider stays the same widget when `count` changes,
    and keeps its value and its address parameter. A plain slider would be reset.
    """
    largest = count - 1
    if st.session_state.get(key, 0) > largest:  # the model that was selected no longer exists
        st.session_state[key] = largest
    choice: int = linked(
        st.select_slider,
        label,
        range(minimum, count),
        min(default, largest),
        key=key,
        help=help or None,
        disabled=largest == minimum,
        part=part,
        width=width,
    )
    return choice


def token(label: str, key: str, tokens: Tokens, default: int) -> int:
    """A slider over the tokens of a text. It stays at the same word when the text changes."""
    state, of, text = st.session_state, f"{key}_of", (tokens.text, tokens.spans)
    before = state.get(of)
    if before not in (None, text) and key in state:
        span = same_word(before[0], before[1][state[key]], tokens.text)
        place = span and find_overlapping(span, enumerate(tokens.spans))
        state[key] = default if place is None else place
    state[of] = text
    return number(label, key, len(tokens), default)


def window(key: str, n_tokens: int, max_tokens: int, as_what: str = "") -> int:
    """Position of the first of at most `max_tokens` tokens of a text; a slider moves the window.

    as_what: what the page uses these tokens for, such as "as both queries and keys".
    """
    if n_tokens <= max_tokens:
        return 0
    first = number("First token shown", key, n_tokens - max_tokens + 1, 0)
    purpose = f", {as_what}" if as_what else ""
    last = first + max_tokens - 1
    st.markdown(f":small[Showing tokens {first} to {last} of your {n_tokens}{purpose}.]")
    return first
