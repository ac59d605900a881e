"""Record selected tensors of selected layers, to save memory over `record=True`.

    with recording(model, layers=[3], tensors=["weights"]) as kept:
        model(token_ids)
    kept[3, "weights"]  # (B, H, T, S)

`TENSORS` lists the names of all tensors.
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
# "attention" is the softmax of the heads, so the output that's added to the residual stream is
# called "attention_output"
TENSORS = frozenset(_OF_HEADS | _OF_LAYER | {"attention_output"})

_active: ContextVar[tuple[Recording, ...]] = ContextVar("recordings", default=())


class Recording(Mapping[tuple[int, str], Tensor]):
    """Tensors of a `Transformer`'s last pass by (layer, name), named as in `TENSORS`."""

    def __init__(self, model: Any, layers: Collection[int], tensors: Collection[str]) -> None:
        self.model = model
        self.layers, self.tensors = frozenset(layers), frozenset(tensors)
        self._kept: dict[tuple[int, str], Tensor] = {}

    def keep(self, layer: int, record: LayerRecord) -> None:
        """Store the selected tensors of a layer."""
        heads = record.attention
        for name in self.tensors:
            if name == "attention_output":
                value = heads.output
            else:
                value = getattr(heads if name in _OF_HEADS else record, name)
            if value is not None:
                self._kept[layer, name] = value

    def __getitem__(self, key: tuple[int, str]) -> Tensor:
        """The tensor (B, ...) with this name in this layer."""
        return self._kept[key]

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Iterate over the (layer, name) pairs that were recorded."""
        return iter(self._kept)

    def __len__(self) -> int:
        """The number of recorded tensors."""
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
    """Record the model's passes inside the `with` block, in this thread.

    Each pass replaces the tensors of the one before.

    layers: layers to record, None for all. tensors: names from `TENSORS`, None for all.
    Raises: ValueError for a layer that the model doesn't have, or a name that isn't in `TENSORS`.
    """
    n_layers = model.config.n_layers
    chosen = range(n_layers) if layers is None else layers
    if wrong := [layer for layer in chosen if layer not in range(n_layers)]:
        raise ValueError(f"layers must be 0 to {n_layers - 1}, got {wrong[0]!r}")
    names = TENSORS if tensors is None else tensors
    if unknown := sorted(set(names) - TENSORS):
        there = ", ".join(sorted(TENSORS))
        raise ValueError(f"unknown tensor {unknown[0]!r}: choose from {there}")
    kept = Recording(model, chosen, names)
    token = _active.set((*_active.get(), kept))
    try:
        yield kept
    finally:
        _active.reset(token)


def recordings_of(model: Any) -> tuple[Recording, ...]:
    """The active recordings of this model in this thread."""
    return tuple(kept for kept in _active.get() if kept.model is model)
