"""Pretrained models: where their weights come from, their tokenizers, and how they are loaded.

Importing this package imports neither torch nor transformers, and no call reaches for the network
except `start_download`, `hub_reachable` and `prefetch` of `pretrained.hub.downloads`. Names that
need torch are resolved on first use.

    pretrained.catalog()           what can be offered, and where it would come from
    pretrained.find(name)          the folder that holds a model's weights, or None
    pretrained.load(model)         a model by its name or path: our Transformer with the weights,
                                   its tokenizer, and lazily transformers' model to compare with
    pretrained.save(model, folder) a core or a loaded model, as a folder that transformers loads too
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

# Where a name lives that is imported on first use: these modules import torch.
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
    """Import the torch-dependent names when they are first asked for."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'pretrained' has no attribute {name!r}")
