"""The model, layer and head that a page shows."""

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
        """The head's name on screen."""
        return f"{self.entry.spec.title}, {HeadId(self.layer, self.head)}"

    @property
    def short_title(self) -> str:
        """The name without the brackets in the model's title, for narrow pictures."""
        return f"{self.entry.spec.title.partition(' (')[0]}, {HeadId(self.layer, self.head)}"
