"""The visit: a visitor's text, model, layer, head and word pair, shared by all pages.

When a page opens, each widget with a part in the visit shows the value that the visitor last chose
on any page. A value in the address takes precedence and becomes the visitor's choice. If a page
can't show a choice (such as a layer that its model doesn't have), the other pages still use it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from serving.content_words import Span, same_word


@dataclass(frozen=True)
class WordPair:
    """A query and a key as ranges of characters, because models split a text differently."""

    text: str
    query: Span
    key: Span


@dataclass(frozen=True)
class Visit:
    """The visitor's latest choices (None: no choice). own: page-specific values, by widget key."""

    text: str | None = None
    model: str | None = None
    layer: int | None = None
    head: int | None = None
    pair: WordPair | None = None
    own: Mapping[str, Any] = field(default_factory=dict)

    def with_own(self, key: str, value: Any) -> Visit:
        """A copy of the visit with a value that only one page uses."""
        return replace(self, own={**self.own, key: value})

    def with_partner(self, partner: Visit) -> Visit:
        """A copy in which a chosen layer gets the head shown next to it, or vice versa."""
        if (self.layer is None) == (self.head is None):
            return self
        layer = partner.layer if self.layer is None else self.layer
        return replace(self, layer=layer, head=partner.head if self.head is None else self.head)


@dataclass(frozen=True)
class VisitPart:
    """How a widget reads and changes the visit.

    prefill: the widget's value when its page opens; None: its default. on_change: returns the visit
    after the visitor has set the widget to a value.
    """

    prefill: Any
    on_change: Callable[[Visit, Any], Visit] = lambda visit, _: visit


@dataclass(frozen=True)
class ShownWidget:
    """A widget's last value, its address parameter at that time, and a parser for it."""

    value: Any
    part: VisitPart
    address: list[str]
    parse: Callable[[list[str]], Any]


@dataclass
class PageView:
    """One view of a page: the widgets shown so far, and callbacks for leaving the page."""

    page: str | None = None
    number: int = 0
    widgets: dict[str, ShownWidget] = field(default_factory=dict)
    callbacks: dict[str, Callable[[], object]] = field(default_factory=dict)


def current() -> Visit:
    """The visit of this session (one browser tab)."""
    visit: Visit = st.session_state.setdefault("visit", Visit())
    return visit


def page_view() -> PageView:
    """The current page view of this session."""
    view: PageView = st.session_state.setdefault("page_view", PageView())
    return view


def open_page(page: str) -> None:
    """Start a new page view if this run shows a different page than the previous one."""
    view = page_view()
    if page == view.page:
        return
    visit, shown = current(), Visit()
    query = getattr(get_script_run_ctx(), "query_string", "")
    left = parse_qs(query, keep_blank_values=True)  # the previous page's address
    for key, widget in view.widgets.items():
        value = _latest(key, widget, left)
        shown = widget.part.on_change(shown, value)
        if value != widget.value:
            visit = widget.part.on_change(visit, value)
    st.session_state["visit"] = visit.with_partner(shown)
    st.session_state["page_view"] = PageView(page, view.number + 1)
    for callback in view.callbacks.values():
        callback()


def on_leave(name: str, callback: Callable[[], object]) -> None:
    """Register a callback for when the visitor leaves the page; one per name."""
    page_view().callbacks[name] = callback


def record(key: str, widget: ShownWidget, *, by_name: bool) -> None:
    """Record a widget's value; a new value, or one from a link, becomes the visitor's choice."""
    widgets = page_view().widgets
    if widgets[key].value != widget.value if key in widgets else by_name:
        st.session_state["visit"] = widget.part.on_change(current(), widget.value)
    widgets[key] = widget


def part(name: str) -> VisitPart:
    """The part for a widget that shows a field of the visit unchanged."""
    return VisitPart(getattr(current(), name), lambda visit, v: replace(visit, **{name: v}))


def model_or_own(key: str, models: Container[str]) -> VisitPart:
    """The part for a model select box with extra options that only its own page has."""
    own = current().own.get(key)
    prefill = own if own is not None and own not in models else current().model

    def choose(visit: Visit, value: str) -> Visit:
        visit = visit.with_own(key, value)
        return replace(visit, model=value) if value in models else visit

    return VisitPart(prefill, choose)


def pair_parts(
    text: str, spans: Mapping[Any, Span], defaults: Mapping[str, Any]
) -> list[VisitPart]:
    """The parts for the two widgets that select a query and a key of a text.

    spans: the characters each value covers. defaults: the widgets' defaults, by key.
    """

    def choose(index: int, visit: Visit, value: Any) -> Visit:
        values = [st.session_state.get(key, default) for key, default in defaults.items()]
        values[index] = value
        if any(one not in spans for one in values):
            return visit
        query, key = (spans[one] for one in values)
        return replace(visit, pair=WordPair(text, query, key))

    shown = find_pair(current().pair, text, spans)
    return [VisitPart(value, partial(choose, index)) for index, value in enumerate(shown)]


def find_pair(pair: WordPair | None, text: str, spans: Mapping[Any, Span]) -> tuple[Any, Any]:
    """The names of a pair's two spans; in a different text, those of the same words or roles.

    Returns (None, None) if they aren't found.
    """
    if pair is None:
        return None, None
    places: list[Span | None] = [pair.query, pair.key]
    if pair.text != text:
        places = [same_word(pair.text, place, text) for place in (pair.query, pair.key)]
    query, key = (place and find_overlapping(place, spans.items()) for place in places)
    return (None, None) if query is None or key is None or query == key else (query, key)


def find_overlapping(place: Span, spans: Iterable[tuple[Any, Span]]) -> Any:
    """The name of the first span that overlaps `place`, or None.

    An empty place, as for a token that the tokenizer added, only matches itself.
    """
    for name, span in spans:
        if span == place or max(span[0], place[0]) < min(span[1], place[1]):
            return name
    return None


def revalidate(defaults: Mapping[str, Any], parts: Iterable[VisitPart]) -> None:
    """Reset widgets whose options have changed to the visit's values, or to their defaults."""
    widgets = page_view().widgets
    for (key, default), own in zip(defaults.items(), parts, strict=True):
        if key in widgets:
            value = st.session_state[key] = default if own.prefill is None else own.prefill
            widgets[key] = replace(widgets[key], value=value)  # set by the page, not by the visitor


def unused_text_note(what: str, where: str = "on the other pages") -> None:
    """Tell visitors who have typed a text that this page doesn't use it."""
    if current().text is not None:
        st.markdown(f":small[This page uses {what}. You can use your own sentence {where}.]")


def _latest(key: str, widget: ShownWidget, page_left: Mapping[str, list[str]]) -> Any:
    """The last value of a widget on the page that the visitor leaves.

    A busy server may merge the request with this value into the request for the next page. Then
    only the address has the value, and that address differs from the one in the last run.
    """
    texts = page_left.get(key, widget.address)
    parsed = None if texts == widget.address else widget.parse(texts)
    return st.session_state.get(key, widget.value) if parsed is None else parsed
