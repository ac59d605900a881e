"""The visit: text, model, layer, head and pair of words travel with a visitor between pages.

When a page is opened, a widget with a part in the visit shows what the visitor chose last on any
page. A value in the address takes precedence and becomes the visitor's choice. What a page can't
show (a layer that its model doesn't have) stays chosen for the pages that can.
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
    """What the visitor chose last; None: nothing. own: values that one page alone has, by key."""

    text: str | None = None
    model: str | None = None
    layer: int | None = None
    head: int | None = None
    pair: WordPair | None = None
    own: Mapping[str, Any] = field(default_factory=dict)

    def with_own(self, key: str, value: Any) -> Visit:
        """The visit after a widget was given a value that other pages don't have."""
        return replace(self, own={**self.own, key: value})

    def with_partner(self, shown: Visit) -> Visit:
        """A layer is chosen together with the head shown next to it, and the other way round."""
        if (self.layer is None) == (self.head is None):
            return self
        layer = shown.layer if self.layer is None else self.layer
        return replace(self, layer=layer, head=shown.head if self.head is None else self.head)


@dataclass(frozen=True)
class VisitPart:
    """How a widget takes part in the visit.

    prefill: what it shows when its page is opened; None: its default. choose: the visit after the
    visitor gave the widget a value.
    """

    prefill: Any
    choose: Callable[[Visit, Any], Visit] = lambda visit, _: visit


@dataclass(frozen=True)
class ShownWidget:
    """A widget's last value, its parameter in the address then, and how to parse such texts."""

    value: Any
    part: VisitPart
    address: list[str]
    parse: Callable[[list[str]], Any]


@dataclass
class PageView:
    """One opening of a page: the widgets shown since, and what to call when the page is left."""

    page: str | None = None
    number: int = 0
    widgets: dict[str, ShownWidget] = field(default_factory=dict)
    callbacks: dict[str, Callable[[], object]] = field(default_factory=dict)


def current() -> Visit:
    """The visit of this session: of one tab."""
    visit: Visit = st.session_state.setdefault("visit", Visit())
    return visit


def page_view() -> PageView:
    """The opening of the page that this session shows."""
    view: PageView = st.session_state.setdefault("page_view", PageView())
    return view


def open_page(page: str) -> None:
    """Begin a new page view if this run shows another page than the run before."""
    view = page_view()
    if page == view.page:
        return
    visit, shown = current(), Visit()
    query = getattr(get_script_run_ctx(), "query_string", "")
    left = parse_qs(query, keep_blank_values=True)  # the address of the page that is left
    for key, widget in view.widgets.items():
        value = _latest(key, widget, left)
        shown = widget.part.choose(shown, value)
        if value != widget.value:
            visit = widget.part.choose(visit, value)
    st.session_state["visit"] = visit.with_partner(shown)
    st.session_state["page_view"] = PageView(page, view.number + 1)
    for callback in view.callbacks.values():
        callback()


def on_leave(name: str, callback: Callable[[], object]) -> None:
    """Call back when the visitor opens another page; a later callback of that name replaces it."""
    page_view().callbacks[name] = callback


def record(key: str, widget: ShownWidget, *, named: bool) -> None:
    """Record what a widget shows, and choose it if it changed or a link named it."""
    widgets = page_view().widgets
    if widgets[key].value != widget.value if key in widgets else named:
        st.session_state["visit"] = widget.part.choose(current(), widget.value)
    widgets[key] = widget


def part(name: str) -> VisitPart:
    """For a widget that shows one field of the visit as it is."""
    return VisitPart(getattr(current(), name), lambda visit, v: replace(visit, **{name: v}))


def model_or_own(key: str, models: Container[str]) -> VisitPart:
    """For a picker of models that also offers something only its own page has."""
    own = current().own.get(key)
    prefill = own if own is not None and own not in models else current().model

    def choose(visit: Visit, value: str) -> Visit:
        visit = visit.with_own(key, value)
        return replace(visit, model=value) if value in models else visit

    return VisitPart(prefill, choose)


def pair_parts(
    text: str, spans: Mapping[Any, Span], defaults: Mapping[str, Any]
) -> list[VisitPart]:
    """For the two widgets that choose a query and a key of a text.

    spans: where in the text their values are. defaults: by the widgets' keys.
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
    """The names of the spans of a pair; in another text, of the same words or roles. Or Nones."""
    if pair is None:
        return None, None
    places: list[Span | None] = [pair.query, pair.key]
    if pair.text != text:
        places = [same_word(pair.text, place, text) for place in (pair.query, pair.key)]
    query, key = (place and overlapping(place, spans.items()) for place in places)
    return (None, None) if query is None or key is None or query == key else (query, key)


def overlapping(place: Span, spans: Iterable[tuple[Any, Span]]) -> Any:
    """The name of the first span that shares a character with a place, or None.

    A place without characters, that of a token added by a tokenizer, only matches itself.
    """
    for name, span in spans:
        if span == place or max(span[0], place[0]) < min(span[1], place[1]):
            return name
    return None


def revalidate(defaults: Mapping[str, Any], parts: Iterable[VisitPart]) -> None:
    """Set widgets after what they choose from has changed: to the visit's values, or defaults."""
    widgets = page_view().widgets
    for (key, default), own in zip(defaults.items(), parts, strict=True):
        if key in widgets:
            value = st.session_state[key] = default if own.prefill is None else own.prefill
            widgets[key] = replace(widgets[key], value=value)  # the page's choice, not the user's


def unused_text_note(what: str, where: str = "on the other pages") -> None:
    """Tell a visitor who typed a text that this page doesn't use it."""
    if current().text is not None:
        st.markdown(f":small[This page uses {what}. Your sentence is still there {where}.]")


def _latest(key: str, widget: ShownWidget, left: Mapping[str, list[str]]) -> Any:
    """What a widget of the page that is left held last.

    A busy server merges the request with its last value and the one for the next page. Then only
    the address has that value: it differs from the one of the last run.
    """
    texts = left.get(key, widget.address)
    parsed = None if texts == widget.address else widget.parse(texts)
    return st.session_state.get(key, widget.value) if parsed is None else parsed
