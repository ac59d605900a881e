"""The models that the site can offer: the known ones, and any others on this machine.

Cheap and offline: a few directory look-ups, no weight file is opened, no torch is imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pretrained import checkpoint, sources
from pretrained.sources import WeightsSource
from pretrained.specs import SPECS, ModelSpec, spec_from_config


@dataclass(frozen=True)
class CatalogEntry:
    """A model, whether it can be loaded now, and from where."""

    spec: ModelSpec
    state: Literal["ready", "downloadable"]
    source: WeightsSource | None


def catalog() -> list[CatalogEntry]:
    """Every model that can be offered: the known ones, then unknown ones on this machine.

    Never raises for what lies in a folder (a broken one is left out) and never uses the network.
    """
    entries = []
    for spec in SPECS:
        try:
            source = sources.find(spec.name)
        except (OSError, ValueError):  # a link to elsewhere, or a folder that cannot be read
            source = None
        entries.append(CatalogEntry(spec, "ready" if source else "downloadable", source))
    for name, source in sources.uncatalogued():
        try:
            spec = spec_from_config(name, checkpoint.read_config(source.path))
        except (OSError, ValueError):
            continue
        entries.append(CatalogEntry(spec, "ready", source))
    return entries
