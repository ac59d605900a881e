"""Widgets whose value is in the page's address, so that every view is a link."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any
from urllib.parse import parse_qs

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.scriptrunner import get_script_run_ctx

from serving import parameters
from serving.visit import Part
from ui.widgets.text_fields import visible
from ui.widgets.visit import bring, current

_DEFAULTS = "linked_defaults"  # in the session: what each linked widget shows if nobody chose
_ASKED = "linked_asked"  # in the session: what the last run was asked for, as of `_asked`
_NAMES = "linked_names"  # in the session: by widget, the choice that each text in its address means
_SHOWN = "linked_shown"  # in the session: which opening of a page, and what its widgets held


def take() -> None:
    """Take for the visit what its widgets were given since the last run; called first in each run.

    Of a page that is left the browser sends no widgets. If the server was too busy to run it again
    with its last values, only the address that it was left with has them (but for a default).
    """
    state, visit = st.session_state, current()
    asked = page, address = _asked()
    page_before, address_before = state.get(_ASKED, (None, {}))
    left = {
        key: parameters.read(_unformatted(key, address[key]), value)
        for key, (_, value, _) in visit.seen.items()
        if key in address and address[key] != address_before.get(key)
        if page != page_before or key not in state
    }
    visit.take(ChainMap(left, state))
    state[_ASKED] = asked  # last: the next run takes what a run that was stopped above did not


def linked(
    widget: Callable[..., Any],
    label: str,
    *arguments: Any,
    key: str,
    part: str | Part | None = None,
    **options: Any,
) -> Any:
    """A Streamlit widget bound to the address parameter `key`, with the widget's own arguments.

    part: which part of the visit it shows and changes, if any: its name, or a `Part` for a widget
    that does not show it as it is.
    A text field shows and returns what it can show of a text: see `ui.widgets.text_fields`.
    Where a link gives it a value that it cannot take, the widget shows its default and says so. One
    that was not on the page for a while (another part was open) shows what it held before.
    format_func: Streamlit writes the formatted choice into the address; links may also name the
    choice itself.
    """
    default, choices = _default(widget, label, arguments, options)
    defaults()[key] = default
    if (shown_as := options.get("format_func")) and isinstance(choices, Iterable):
        _take_name(key, choices, shown_as)
    named = key in st.query_params  # before what is brought is written there
    if isinstance(part, str):
        part = current().part(part)
    if key not in st.session_state and key in _shown():
        bring(key, _shown()[key], choices=choices, default=default, again=True)
    elif part is not None:
        bring(key, visible(widget, part.brought), choices=choices, default=default)
    # later the address follows the widget: only its first value can be one that does not fit
    address_values = [] if key in st.session_state else st.query_params.get_all(key)
    value = widget(label, *arguments, key=key, bind="query-params", **options)
    if value is None and options.get("required"):
        value = options["default"]  # Streamlit clears even these for an empty parameter
    address_values = [visible(widget, text) for text in _unformatted(key, address_values)]
    refused = bool(address_values) and not parameters.say(address_values, value)
    if refused:
        is_cut = isinstance(value, str) and value and address_values[-1].startswith(value)
        why = "is too long for it; its end" if is_cut else "it cannot take here; it"
        said = f"The link gives “{label}” a value that {why} is left out."
        st.toast(said, icon=":material/link_off:", duration="long")
    if part is not None:
        current().keep(key, value, part.says, named=named and not refused)
    _shown()[key] = value
    page, asked = _asked()  # once more: a fragment runs without `take`
    before = st.session_state.get(_ASKED, (None, {}))[1]
    st.session_state[_ASKED] = page, before | {key: asked.get(key)}
    return value


def _take_name(key: str, choices: Iterable[Any], shown_as: Callable[[Any], str]) -> None:
    """Give a widget that is made for the first time the choice that its address names."""
    by_name = {str(choice): choice for choice in choices}
    names = st.session_state.setdefault(_NAMES, {})
    names[key] = {shown_as(choice): name for name, choice in by_name.items()}
    text = st.query_params.get(key)
    context = get_script_run_ctx()
    if context is None or text not in by_name or text in names[key]:
        return
    with suppress(StreamlitAPIException):  # the browser has written it for this widget
        st.query_params[key] = shown_as(by_name[text])
        with context.session_state.query_params() as query:
            query.set_initial_query_params_from_current()


def _unformatted(key: str, texts: list[str]) -> list[str]:
    """The texts of an address, with the choices in place of what the widget shows for them."""
    names = st.session_state.get(_NAMES, {}).get(key, {})
    return [names.get(text, text) for text in texts]


def defaults() -> dict[str, Any]:
    """The default of every linked widget of this session, by its key."""
    found: dict[str, Any] = st.session_state.setdefault(_DEFAULTS, {})
    return found


@contextmanager
def apart() -> Iterator[dict[str, Any]]:
    """Give the defaults of the widgets made inside the `with`; behind it they join the others."""
    others, inside = defaults(), dict[str, Any]()
    st.session_state[_DEFAULTS] = inside
    try:
        yield inside
    finally:
        st.session_state[_DEFAULTS] = others | inside


def changed(widgets: Mapping[str, Any]) -> list[str]:
    """Those of these widgets (keys and defaults) that are on the page with another value.

    No choice and an empty list of choices are the same.
    """
    held = st.session_state
    return [
        key
        for key, default in widgets.items()
        if key in held and (held[key] or default) and held[key] != default
    ]


def address(prefix: str) -> list[tuple[str, str]]:
    """The parameters of a link that sets the linked widgets `<prefix>_...` to what they are now."""
    return [
        (key, text)
        for key in sorted(changed(defaults()))
        if key.startswith(f"{prefix}_")
        for text in parameters.written(st.session_state[key])
    ]


def _asked() -> tuple[str | None, dict[str, list[str]]]:
    """Which page this run was asked for, and the parameters of the address it was asked with."""
    context = get_script_run_ctx()
    if context is None:
        return None, {}
    return context.page_script_hash, parse_qs(context.query_string, keep_blank_values=True)


def _shown() -> dict[str, Any]:
    """What the linked widgets that were made since the page was opened held last."""
    opening, held = st.session_state.get(_SHOWN, (None, {}))
    if opening != current().openings:
        opening, held = st.session_state[_SHOWN] = current().openings, {}
    return held


@cache
def _signature(widget: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(widget)


def _default(
    widget: Callable[..., Any], label: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, Container[object] | None]:
    """What a widget shows if nobody chose, and what it can take (None: every value)."""
    given = _signature(widget).bind(label, *arguments, **options)
    given.apply_defaults()
    named = given.arguments
    choices = named.get("options")
    if "index" in named:
        return list(choices)[named["index"]] if choices else None, choices
    default = named.get("value", named.get("default"))
    if default is None and "default" not in named:  # a slider begins at its first value
        default = list(choices)[0] if choices else named.get("min_value")
    return default, choices
