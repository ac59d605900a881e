"""The head of a model that a page shows."""

from __future__ import annotations

from dataclasses import dataclass

from pretrained import CatalogEntry
from serving.heads import HeadId


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

    @property
    def short_title(self) -> str:
        """The same without what the model's title says in brackets, for a narrow picture."""
        return f"{self.entry.spec.title.partition(' (')[0]}, {HeadId(self.layer, self.head)}"
