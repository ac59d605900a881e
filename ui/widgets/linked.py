"""Widgets whose value is in the page's address, so that every view is a link."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.scriptrunner import get_script_run_ctx

from ui.widgets import visit
from ui.widgets.text_fields import visible
from ui.widgets.visit import ShownWidget, VisitPart

_DEFAULTS = "linked_defaults"  # in the session: what each linked widget shows if nobody chose


def linked(
    widget: Callable[..., Any],
    label: str,
    *arguments: Any,
    key: str,
    part: str | VisitPart | None = None,
    **options: Any,
) -> Any:
    """A Streamlit widget bound to the address parameter `key`, with the widget's own arguments.

    part: the field of the visit that it shows and changes, or a `VisitPart`.
    A link may name a choice by itself or as `format_func` shows it. If it gives a value that the
    widget can't take, the widget shows its default and a toast says so.
    """
    default, choices = _default_and_choices(widget, label, arguments, options)
    defaults()[key] = default
    show = options.get("format_func", str)
    names = None if choices is None else _names(choices, show)
    is_new, named = key not in visit.page_view().widgets, key in st.query_params
    part = visit.part(part) if isinstance(part, str) else part or VisitPart(None)
    if is_new and named and names:
        _accept_name(key, names, show)
    elif is_new and not named:
        _prefill(key, visible(widget, part.prefill), choices, default)
    address = st.query_params.get_all(key)
    value = widget(label, *arguments, key=key, bind="query-params", **options)
    if value is None and options.get("required"):
        value = default  # Streamlit clears even these for an empty parameter
    parse = partial(_parse, widget=widget, names=names, like=value)
    refused = is_new and address != [] and parse(address) != value
    if refused:
        message = (
            f"The link gives “{label}” a value that it cannot take, so it was shortened or ignored."
        )
        st.toast(message, icon=":material/link_off:", duration="long")
    visit.record(key, ShownWidget(value, part, address, parse), named=named and not refused)
    return value


def defaults() -> dict[str, Any]:
    """The default of every linked widget of this session, by its key."""
    found: dict[str, Any] = st.session_state.setdefault(_DEFAULTS, {})
    return found


@contextmanager
def isolated_defaults() -> Iterator[dict[str, Any]]:
    """Give the defaults of the widgets made inside the `with` alone."""
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
    state = st.session_state
    return [
        key
        for key, default in widgets.items()
        if key in state and (state[key] or default) and state[key] != default
    ]


def address(prefix: str) -> list[tuple[str, str]]:
    """The parameters of a link that sets the linked widgets `<prefix>_...` to what they are now."""
    return [
        (key, text)
        for key in sorted(changed(defaults()))
        if key.startswith(f"{prefix}_")
        for text in _texts(st.session_state[key])
    ]


def _prefill(key: str, value: Any, choices: Collection[Any] | None, default: Any) -> None:
    """Give a new widget a value of the visit, unless the browser goes back or forward."""
    values = value if isinstance(value, list) else [value]
    fits = value is not None and (choices is None or all(one in choices for one in values))
    if not fits or getattr(get_script_run_ctx(), "is_history_navigation", False):
        return
    st.session_state[key] = value
    if value != default:
        with suppress(StreamlitAPIException):  # refused if Streamlit knows the widget and does it
            st.query_params[key] = _texts(value)


def _accept_name(key: str, names: Mapping[str, Any], show: Callable[[Any], str]) -> None:
    """Give a new widget the choice that a link names by itself.

    Streamlit only knows choices as they are shown, and reads the address before a page can.
    """
    text, context = st.query_params[key], get_script_run_ctx()
    if context is None or text not in names or text == show(names[text]):
        return
    with suppress(StreamlitAPIException):  # refused for a widget that Streamlit knows
        st.query_params[key] = show(names[text])
        with context.session_state.query_params() as query:
            query.set_initial_query_params_from_current()


def _names(choices: Iterable[Any], show: Callable[[Any], str]) -> dict[str, Any]:
    """Every choice by the texts that mean it in an address."""
    return {text: choice for choice in choices for text in (str(choice), show(choice))}


def _parse(
    texts: list[str], widget: Callable[..., Any], names: Mapping[str, Any] | None, like: Any
) -> Any:
    """The value that the texts of a parameter mean, of the type of `like`; None: no value."""
    if isinstance(like, list):
        return [(names or {}).get(text, text) for text in texts if text]
    text = texts[-1]
    if names is not None:
        return names.get(text)
    if isinstance(like, bool):
        return {"true": True, "false": False}.get(text.lower())
    if isinstance(like, int | float):
        with suppress(ValueError):
            return float(text)
        return None
    return visible(widget, text)


def _texts(value: Any) -> list[str]:
    """The texts of a parameter for a value: one for each element, an empty one for no element."""
    if isinstance(value, list):
        return [text for element in value for text in _texts(element)] or [""]
    if isinstance(value, bool):
        return [str(value).lower()]
    if isinstance(value, float):
        return [str(value).removesuffix(".0")]
    return ["" if value is None else str(value)]


_signature = cache(inspect.signature)


def _default_and_choices(
    widget: Callable[..., Any], label: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, Collection[Any] | None]:
    """What a widget shows if nobody chose, and what it can show (None: every value)."""
    bound = _signature(widget).bind(label, *arguments, **options)
    bound.apply_defaults()
    named = bound.arguments
    choices = named.get("options")
    if "index" in named:
        return list(choices)[named["index"]] if choices else None, choices
    default = named.get("value", named.get("default"))
    if default is None and "default" not in named:  # a slider begins at its first value
        default = list(choices)[0] if choices else named.get("min_value")
    return default, choices
