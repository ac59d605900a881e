"""What a visitor chose goes along to the other pages: text, model, layer, head, a pair of tokens.

A widget that has a part in the visit shows, when its page is opened, what the visitor chose last on
any page. An address that names a value wins, and becomes the visitor's choice. What a page cannot
take (a layer that its model does not have) stays chosen for the pages that can.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from serving.content_words import same_word

TEXT, MODEL, LAYER, HEAD, PAIR = "text", "model", "layer", "head", "pair"
_PARTNERS = {LAYER: HEAD, HEAD: LAYER}

Span = tuple[int, int]  # a half-open range of characters
Says = Callable[[Any], Mapping[str, Any]]  # from a widget's value to the parts that it chooses


@dataclass(frozen=True)
class Pair:
    """Two places in a text: what looks (the query) and what it looks at (the key).

    They are ranges of characters, because models cut a text into different tokens.
    """

    text: str
    query: Span
    key: Span


@dataclass(frozen=True)
class Part:
    """What a widget has to do with the visit.

    brought: what it shows of the visit when its page is opened; None: nothing. says: what a value
    of it chooses.
    """

    brought: Any
    says: Says


def found(place: Span, spans: Iterable[tuple[Any, Span]]) -> Any:
    """The name of the first of the named ranges that shares a character with a place, or None.

    A place without characters, that of a token which a tokenizer added, is found only as it is.
    """
    for name, span in spans:
        if span == place or max(span[0], place[0]) < min(span[1], place[1]):
            return name
    return None


@dataclass
class Visit:
    """The visit of one visitor.

    chosen: what was chosen for each part. seen: the widgets that were shown since their page was
    opened, by their keys, each with the number of that opening, its last value, and what a value of
    it says.
    """

    chosen: dict[str, Any] = field(default_factory=dict)
    page: str | None = None
    openings: int = 0
    seen: dict[str, tuple[int, Any, Says]] = field(default_factory=dict)
    _ends: dict[str, Callable[[], object]] = field(default_factory=dict)  # of what the page began

    def take(self, values: Mapping[Any, Any]) -> None:
        """Take what was changed since the last run; called first in each run of a page.

        values: what the widgets hold. Who chose something and opened another page at once left
        before the first page could show that choice: it would be gone with the page.
        """
        for key, (opening, before, says) in list(self.seen.items()):
            value = values.get(key, before)
            if opening == self.openings and value != before:
                self._choose(says(value), changed=True)

    def open_page(self, page: str) -> None:
        """Tell which page runs; called in each of its runs, behind `take`."""
        if page == self.page:
            return
        for opening, shown, says in self.seen.values():
            if opening == self.openings:
                self._choose(says(shown), changed=False)
        self.page = page
        self.openings += 1
        ends, self._ends = self._ends, {}
        for end in ends.values():
            end()

    def until_left(self, name: str, end: Callable[[], object]) -> None:
        """Have `end` called when the visitor opens another page in this tab.

        name: of what it ends; a later call with the same name replaces an earlier one.
        """
        self._ends[name] = end

    def is_seen(self, key: str) -> bool:
        """Whether the widget was shown since its page was opened."""
        return key in self.seen and self.seen[key][0] == self.openings

    def keep(self, key: str, value: Any, says: Says, *, named: bool) -> None:
        """Take a widget's value as the visitor's choice if it was changed, or named by an address.

        says: what a value of the widget chooses.
        """
        changed = self.seen[key][1] != value if self.is_seen(key) else named
        self._choose(says(value), changed)
        self.seen[key] = (self.openings, value, says)

    def part(self, name: str) -> Part:
        """For a widget that shows one part of the visit as it is."""
        return Part(self.chosen.get(name), lambda value: {name: value})

    def either(self, key: str, name: str, values: Container[Any]) -> Part:
        """For a widget that shows a part of the visit, or something that its page alone has.

        key: of the widget. values: those of the part. Whoever chose what the page alone has finds
        it there again.
        """
        own = self.chosen.get(key)
        brought = own if own is not None and own not in values else self.chosen.get(name)
        return Part(brought, lambda v: {key: v, name: v} if v in values else {key: v})

    def pair(
        self, text: str, spans: Mapping[Any, Span], shown: Callable[[], Iterable[Any]]
    ) -> list[Part]:
        """For the two widgets that choose a query and a key of a text.

        spans: where in the text their values stand. shown: which two values they hold.
        """
        chosen = self.chosen.get(PAIR)
        brought: list[Any] = [None, None]
        if chosen is not None:
            places = [chosen.query, chosen.key]
            if chosen.text != text:  # the same words, or words with the same role
                places = [same_word(chosen.text, place, text) for place in places]
            both = [place and found(place, spans.items()) for place in places]
            brought = brought if None in both or both[0] == both[1] else both

        def says(index: int, value: Any) -> dict[str, Any]:
            both = [value if index == place else other for place, other in enumerate(shown())]
            places = [spans.get(name) for name in both]
            return {} if None in places else {PAIR: Pair(text, *places)}  # type: ignore[arg-type]

        return [Part(value, partial(says, index)) for index, value in enumerate(brought)]

    def renew(
        self, shown: Mapping[str, Any], parts: Iterable[Part], state: MutableMapping[Any, Any]
    ) -> None:
        """Give the widgets of a pair what they show of another text, or of one cut otherwise.

        shown: their keys, and what they show if nobody chose a pair. parts: as of `pair`. state:
        what widgets hold.
        """
        for (key, default), part in zip(shown.items(), parts, strict=True):
            if self.is_seen(key):
                state[key] = default if part.brought is None else part.brought
                self._given(key, state[key])

    def _given(self, key: str, value: Any) -> None:
        """Note what a widget was given by the page: only another value is the visitor's choice."""
        opening, _, says = self.seen[key]
        self.seen[key] = (opening, value, says)

    def _choose(self, said: Mapping[str, Any], changed: bool) -> None:
        """Take what a widget says; of one that was not changed only the partners of a choice.

        Whoever chose a layer chose the head that is shown with it, and the other way round.
        """
        for part, value in said.items():
            if changed or (part not in self.chosen and _PARTNERS.get(part) in self.chosen):
                self.chosen[part] = value
