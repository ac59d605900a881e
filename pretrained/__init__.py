"""Pretrained models: finding their weights, loading them, and their tokenizers.

Importing this package imports neither torch nor transformers; names that need torch are resolved on
first use. Only `start_download`, `hub_reachable` and `prefetch` of `pretrained.hub.downloads` use
the network.

    pretrained.catalog()           the available models and the downloadable ones
    pretrained.find(name)          the location of a model's weights, or None
    pretrained.load(model)         a model by its name or path: our Transformer with the weights,
                                   its tokenizer and, on first use, the transformers model
    pretrained.save(model, folder) save a core or a loaded model in the format of transformers
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pretrained.catalog import CatalogEntry, catalog
from pretrained.load import Pretrained, WeightsMissing, load, load_by_name
from pretrained.sources import WeightsSource, find
from pretrained.specs import ModelSpec

if TYPE_CHECKING:
    from pretrained.export import save
    from pretrained.tokenization.tokens import Tokenizer, Tokens
    from pretrained.weights import core_from_reference, core_from_state_dict, transformer_config

# The modules of names that are imported on first use because they need torch.
_LAZY = {
    "Tokenizer": "pretrained.tokenization.tokens",
    "Tokens": "pretrained.tokenization.tokens",
    "core_from_reference": "pretrained.weights",
    "core_from_state_dict": "pretrained.weights",
    "save": "pretrained.export",
    "transformer_config": "pretrained.weights",
}

__all__ = [
    "CatalogEntry",
    "ModelSpec",
    "Pretrained",
    "WeightsSource",
    "Tokenizer",
    "Tokens",
    "WeightsMissing",
    "catalog",
    "core_from_reference",
    "core_from_state_dict",
    "find",
    "load",
    "load_by_name",
    "save",
    "transformer_config",
]


def __getattr__(name: str) -> Any:
    """Import names that depend on torch on first use."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'pretrained' has no attribute {name!r}")
