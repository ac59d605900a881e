"""The models that the site can offer: the known ones, and any others on this machine.

Fast and offline: only looks up a few directories, without opening weight files or importing torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pretrained import checkpoint, sources
from pretrained.sources import WeightsSource
from pretrained.specs import SPECS, ModelSpec, spec_from_config


@dataclass(frozen=True)
class CatalogEntry:
    """A model, whether it's ready to be loaded, and its location."""

    spec: ModelSpec
    state: Literal["ready", "downloadable"]
    source: WeightsSource | None


def catalog() -> list[CatalogEntry]:
    """Every model that can be offered: the known ones, then unknown ones on this machine.

    Never uses the network. Broken folders are left out and don't raise errors.
    """
    entries = []
    for spec in SPECS:
        try:
            source = sources.find(spec.name)
        except (OSError, ValueError):  # a link that leaves the folder, or an unreadable folder
            source = None
        entries.append(CatalogEntry(spec, "ready" if source else "downloadable", source))
    for name, source in sources.uncatalogued():
        try:
            spec = spec_from_config(name, checkpoint.read_config(source.path))
        except (OSError, ValueError):
            continue
        entries.append(CatalogEntry(spec, "ready", source))
    return entries
