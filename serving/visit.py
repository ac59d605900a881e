"""What a visitor chose goes along to the other pages: the text, the model, a layer and a head.

A widget that has a part in the visit shows, when its page is opened, what the visitor chose last on
any page. An address that names a value wins, and becomes the visitor's choice. What a page cannot
take (a layer that its model does not have) stays chosen for the pages that can.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TEXT, MODEL, LAYER, HEAD = "text", "model", "layer", "head"
_PARTNERS = {LAYER: HEAD, HEAD: LAYER}


@dataclass
class Visit:
    """The visit of one visitor.

    chosen: what was chosen for each part. seen: the widgets that were shown since their page was
    opened, by their keys, each with the number of that opening, its last value, and its part.
    """

    chosen: dict[str, Any] = field(default_factory=dict)
    page: str | None = None
    openings: int = 0
    seen: dict[str, tuple[int, Any, str]] = field(default_factory=dict)

    def open_page(self, page: str, values: Mapping[Any, Any]) -> None:
        """Tell which page runs; called before each of its runs.

        values: what the widgets hold. Who chose something and opened another page at once left
        before the first page could run with that choice: it is taken here.
        """
        if page == self.page:
            return
        shown = {
            part: (value, values.get(key, value))
            for key, (opening, value, part) in self.seen.items()
            if opening == self.openings
        }
        for part, (before, now) in shown.items():
            if now != before:
                self.chosen[part] = now
                partner = _PARTNERS.get(part)
                if partner in shown:
                    self.chosen.setdefault(partner, shown[partner][1])
        self.page = page
        self.openings += 1

    def is_seen(self, key: str) -> bool:
        """Whether the widget was shown since its page was opened."""
        return key in self.seen and self.seen[key][0] == self.openings

    def keep(self, part: str, key: str, value: Any, *, named: bool) -> None:
        """Take a widget's value as the visitor's choice if it was changed, or named by an address.

        Whoever chose a layer chose the head that is shown with it, and the other way round.
        """
        changed = self.seen[key][1] != value if self.is_seen(key) else named
        if changed or (part not in self.chosen and _PARTNERS.get(part) in self.chosen):
            self.chosen[part] = value
        self.seen[key] = (self.openings, value, part)
