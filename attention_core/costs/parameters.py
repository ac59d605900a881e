"""Count the parameters of each part of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import nn

from attention_core.attention import MultiHeadAttention
from attention_core.model.config import TransformerConfig
from attention_core.model.latent import LatentAttention
from attention_core.model.transformer import Transformer

Model = TypeVar("Model", bound=nn.Module)


def parameters_by_part(model: nn.Module) -> dict[str, int]:
    """The number of parameters in each part of a model; the sum is the model's total.

    Works on the meta device too, where weights take no memory. Queries, keys and values share one
    matrix, and each gets its own columns.
    """
    parts: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        for part, count in _parts_of(model, name, parameter):
            parts[part] = parts.get(part, 0) + count
    return parts


_TABLES = {"positions": "positions", "segments": "segments"}


def _parts_of(model: nn.Module, name: str, parameter: nn.Parameter) -> list[tuple[str, int]]:
    owner, _, _ = name.rpartition(".")
    count = parameter.numel()
    if name in _TABLES:
        return [(_TABLES[name], count)]
    if name in ("embedding", "unembedding"):
        separate = isinstance(model, Transformer) and model.embedding is not None
        if name == "unembedding" and separate:
            return [("output matrix", count)]
        tied = not separate
        return [("embedding, also the output matrix" if tied else "embedding", count)]
    if owner.endswith("norm"):
        return [("norms", count)]
    if ".mlp." in name:
        return [("feed-forward", count)]
    if ".cross." in name:
        return [("cross-attention", count)]
    if owner.endswith(".out"):
        return [("attention: out", count)]
    attention = model.get_submodule(owner.rpartition(".")[0])
    if isinstance(attention, LatentAttention):
        of_queries = owner.rpartition(".")[2].startswith("q_")
        return [("attention: queries" if of_queries else "attention: latent keys, values", count)]
    assert isinstance(attention, MultiHeadAttention)  # no other parameters are left in either model
    q, k, v = parameter.split(attention.widths)
    return [
        ("attention: queries", q.numel()),
        ("attention: keys", k.numel()),
        ("attention: values", v.numel()),
    ]


def on_meta_device(make: Callable[[TransformerConfig], Model], config: TransformerConfig) -> Model:
    """Build a model on the meta device: shapes without values or memory.

    This makes it possible to count models of any size.
    """
    with torch.device("meta"):
        return make(config)
