"""Record chosen tensors of chosen layers, which fits in memory where `record=True` doesn't.

    with recording(model, layers=[3], tensors=["weights"]) as kept:
        model(token_ids)
    kept[3, "weights"]  # (B, H, T, S)

The names of all tensors are in `TENSORS`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from typing import Any

from torch import Tensor

from attention_core.attend import AttentionRecord
from attention_core.model.block import LayerRecord

_OF_HEADS = {field.name for field in fields(AttentionRecord)} - {"scale", "output"}
_OF_LAYER = {field.name for field in fields(LayerRecord)} - {"attention"}
# `attention` is that of the heads, the softmax; what attention adds to the stream has its own name
TENSORS = frozenset(_OF_HEADS | _OF_LAYER | {"attention_output"})

_active: ContextVar[tuple[Recording, ...]] = ContextVar("recordings", default=())


class Recording(Mapping[tuple[int, str], Tensor]):
    """Tensors of a `Transformer`'s last pass by (layer, name); the names are in `TENSORS`."""

    def __init__(self, model: Any, layers: Collection[int], tensors: Collection[str]) -> None:
        self.model = model
        self.layers, self.tensors = frozenset(layers), frozenset(tensors)
        self._kept: dict[tuple[int, str], Tensor] = {}

    def keep(self, layer: int, record: LayerRecord) -> None:
        """Keep the chosen tensors of a layer and let the others go."""
        heads = record.attention
        for name in self.tensors:
            if name == "attention_output":
                value = heads.output
            else:
                value = getattr(heads if name in _OF_HEADS else record, name)
            if value is not None:
                self._kept[layer, name] = value

    def __getitem__(self, key: tuple[int, str]) -> Tensor:
        """The tensor (B, ...) of a layer by its name."""
        return self._kept[key]

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """The (layer, name) of everything that was kept."""
        return iter(self._kept)

    def __len__(self) -> int:
        """How many tensors were kept."""
        return len(self._kept)

    def __repr__(self) -> str:
        kept = ", ".join(f"{key}: {tuple(value.shape)}" for key, value in self._kept.items())
        return f"Recording({kept})"


@contextmanager
def recording(
    model: Any,
    *,
    layers: Collection[int] | None = None,
    tensors: Collection[str] | None = None,
) -> Iterator[Recording]:
    """Record every pass of the model inside `with`, in this thread; a new pass replaces the last.

    layers: None for all. tensors: names in `TENSORS`, None for all.
    Raises: ValueError for a layer that the model doesn't have, or another name.
    """
    n_layers = model.config.n_layers
    chosen = range(n_layers) if layers is None else layers
    if wrong := [layer for layer in chosen if layer not in range(n_layers)]:
        raise ValueError(f"layers must be 0 to {n_layers - 1}, got {wrong[0]!r}")
    names = TENSORS if tensors is None else tensors
    if unknown := sorted(set(names) - TENSORS):
        there = ", ".join(sorted(TENSORS))
        raise ValueError(f"no tensor is called {unknown[0]!r}; there are {there}")
    kept = Recording(model, chosen, names)
    token = _active.set((*_active.get(), kept))
    try:
        yield kept
    finally:
        _active.reset(token)


def recordings_of(model: Any) -> tuple[Recording, ...]:
    """The recordings of this model that are open in this thread."""
    return tuple(kept for kept in _active.get() if kept.model is model)
