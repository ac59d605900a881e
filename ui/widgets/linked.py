"""Widgets whose values are in the page's address, so that every view can be linked to."""

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

_DEFAULTS = "linked_defaults"  # session key: the default of each linked widget


def linked(
    widget: Callable[..., Any],
    label: str,
    *arguments: Any,
    key: str,
    part: str | VisitPart | None = None,
    **options: Any,
) -> Any:
    """Show a Streamlit widget that is bound to the address parameter `key`.

    part: the field of the visit that the widget shows and changes, or a `VisitPart`. Other
    arguments are passed to the widget. A link may contain an option's value or its label (from
    `format_func`). If the value in a link is invalid, the widget shows its default and a toast
    explains why.
    """
    default, choices = _default_and_choices(widget, label, arguments, options)
    widget_defaults()[key] = default
    show = options.get("format_func", str)
    names = None if choices is None else _names(choices, show)
    is_new, by_name = key not in visit.page_view().widgets, key in st.query_params
    part = visit.part(part) if isinstance(part, str) else part or VisitPart(None)
    if is_new and by_name and names:
        _accept_name(key, names, show)
    elif is_new and not by_name:
        _prefill(key, visible(widget, part.prefill), choices, default)
    address = st.query_params.get_all(key)
    value = widget(label, *arguments, key=key, bind="query-params", **options)
    if value is None and options.get("required"):
        value = default  # Streamlit clears even required widgets if the parameter is empty
    parse = partial(_parse, widget=widget, names=names, like=value)
    refused = is_new and address != [] and parse(address) != value
    if refused:
        message = f"The link has an invalid value for “{label}”, so it was shortened or ignored."
        st.toast(message, icon=":material/link_off:", duration="long")
    visit.record(key, ShownWidget(value, part, address, parse), by_name=by_name and not refused)
    return value


def widget_defaults() -> dict[str, Any]:
    """The defaults of all linked widgets in this session, by widget key."""
    result: dict[str, Any] = st.session_state.setdefault(_DEFAULTS, {})
    return result


@contextmanager
def isolated_defaults() -> Iterator[dict[str, Any]]:
    """Yield only the defaults of widgets that are created inside the `with` block."""
    others, inside = widget_defaults(), dict[str, Any]()
    st.session_state[_DEFAULTS] = inside
    try:
        yield inside
    finally:
        st.session_state[_DEFAULTS] = others | inside


def changed(widgets: Mapping[str, Any]) -> list[str]:
    """The keys of the widgets (key -> default) on the page whose value isn't the default.

    None and an empty list count as equal.
    """
    state = st.session_state
    return [
        key
        for key, default in widgets.items()
        if key in state and (state[key] or default) and state[key] != default
    ]


def link_parameters(prefix: str) -> list[tuple[str, str]]:
    """The address parameters that restore the current values of the widgets `<prefix>_...`."""
    return [
        (key, text)
        for key in sorted(changed(widget_defaults()))
        if key.startswith(f"{prefix}_")
        for text in _format(st.session_state[key])
    ]


def _prefill(key: str, value: Any, choices: Collection[Any] | None, default: Any) -> None:
    """Set a new widget to the visit's value, unless the browser went back or forward."""
    values = value if isinstance(value, list) else [value]
    fits = value is not None and (choices is None or all(one in choices for one in values))
    if not fits or getattr(get_script_run_ctx(), "is_history_navigation", False):
        return
    st.session_state[key] = value
    if value != default:
        with suppress(StreamlitAPIException):  # if Streamlit knows the widget, it does this itself
            st.query_params[key] = _format(value)


def _accept_name(key: str, names: Mapping[str, Any], show: Callable[[Any], str]) -> None:
    """Accept a link that contains an option's value instead of its label.

    Streamlit only accepts labels, and it reads the address before the page can.
    """
    text, context = st.query_params[key], get_script_run_ctx()
    if context is None or text not in names or text == show(names[text]):
        return
    with suppress(StreamlitAPIException):  # not allowed if Streamlit already knows the widget
        st.query_params[key] = show(names[text])
        with context.session_state.query_params() as query:
            query.set_initial_query_params_from_current()


def _names(choices: Iterable[Any], show: Callable[[Any], str]) -> dict[str, Any]:
    """All options, by the strings that may represent them in an address."""
    return {text: choice for choice in choices for text in (str(choice), show(choice))}


def _parse(
    texts: list[str], widget: Callable[..., Any], names: Mapping[str, Any] | None, like: Any
) -> Any:
    """Parse the strings of a parameter into a value of the type of `like`; None if invalid."""
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


def _format(value: Any) -> list[str]:
    """The parameter strings for a value: one per element, or one empty string for no elements."""
    if isinstance(value, list):
        return [text for element in value for text in _format(element)] or [""]
    if isinstance(value, bool):
        return [str(value).lower()]
    if isinstance(value, float):
        return [str(value).removesuffix(".0")]
    return ["" if value is None else str(value)]


_signature = cache(inspect.signature)


def _default_and_choices(
    widget: Callable[..., Any], label: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, Collection[Any] | None]:
    """A widget's default and its options (None: any value is allowed)."""
    bound = _signature(widget).bind(label, *arguments, **options)
    bound.apply_defaults()
    by_name = bound.arguments
    choices = by_name.get("options")
    if "index" in by_name:
        return list(choices)[by_name["index"]] if choices else None, choices
    default = by_name.get("value", by_name.get("default"))
    if default is None and "default" not in by_name:  # sliders default to their first value
        default = list(choices)[0] if choices else by_name.get("min_value")
    return default, choices
