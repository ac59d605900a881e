"""Parameter counts for each part of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from pages.learn.block.original_layers import BASE_2017, key
from serving import models
from serving.cache import cached
from ui.charts import style
from ui.charts.bars import label_table

# Parts with the same color on all pages; the others are gray.
_COLOURS = {
    "positions": style.POSITIONS,
    "attention: queries": style.QUERIES,
    "attention: keys": style.KEYS,
    "attention: values": style.VALUES,
    "attention: out": style.ATTENTION,
    "cross-attention": style.ATTENTION,
    "feed-forward": style.FEED_FORWARD,
}


@dataclass(frozen=True)
class PartCounts:
    """Parameters of a model by part; `is_loaded` if counted from actual weights."""

    parts: dict[str, int]
    total: int
    is_loaded: bool

    @property
    def bars(self) -> pd.DataFrame:
        """The parts as input for `ui.charts.bars`."""
        colours = [_COLOURS.get(part, style.STREAM) for part in self.parts]
        return label_table(self.parts.keys(), self.parts.values()).assign(colour=colours)

    @property
    def table(self) -> pd.DataFrame:
        """One row per part, with the total last."""
        rows = [*self.parts.items(), ("total", self.total)]
        return pd.DataFrame(
            {
                "part": [part for part, _ in rows],
                "parameters": [f"{count:,}" for _, count in rows],
                "share": [f"{count / self.total:.1%}" for _, count in rows],
            }
        )


def countable() -> list[str]:
    """The 2017 Transformer, ready models, and models with known sizes."""
    from attention_core import PRESETS

    ready = [entry.spec.name for entry in models.available()]
    return [BASE_2017, *ready, *(name for name in PRESETS if name not in ready)]


@cached(key=lambda choice: key(choice))
def counts(choice: str) -> PartCounts:
    """Count parameters by part, from weights if available. Errors: as in loading."""
    from attention_core import PRESETS, Transformer
    from attention_core.costs.parameters import on_meta_device, parameters_by_part
    from attention_core.model.original_transformer import (
        EncoderDecoder,
        original_config,
    )

    ready = choice in [entry.spec.name for entry in models.available()]
    model: Any
    if choice == BASE_2017:
        model = on_meta_device(EncoderDecoder, original_config())
    else:
        model = models.get(choice).core if ready else on_meta_device(Transformer, PRESETS[choice])
    parts = parameters_by_part(model)
    order = sorted(parts, key=lambda part: -parts[part])
    total = sum(parameter.numel() for parameter in model.parameters())
    return PartCounts({part: parts[part] for part in order}, total, ready)
