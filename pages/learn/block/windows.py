"""Panels for a step of a layer: corners of its tensors, and heads side by side."""

from __future__ import annotations

import numpy as np

from pages.learn.block.steps import AXES, LayerSteps, TensorStep
from ui.canvas.tensors import Panel, Quantity

TOKENS_SHOWN, COLUMNS_SHOWN = 6, 6  # size of the drawn corner
HEADS_SHOWN, HEAD_COLUMNS_SHOWN = 3, 3  # heads, and columns of each, if heads are concatenated
# Tensors in the residual stream, and tensors added to it.
QUANTITIES: dict[str, Quantity] = {
    "input": "stream", "residual sum": "stream", "normalised sum": "stream",
    "residual sum with cross-attention": "stream", "normalised cross-attention sum": "stream",
    "second residual sum": "stream", "normalised output": "stream",
    "out projection": "attention", "cross-attention out projection": "attention",
    "feed-forward output": "feed-forward",
}  # fmt: skip
PALETTE = (HEADS_SHOWN, TOKENS_SHOWN * HEAD_COLUMNS_SHOWN)  # one hue per head


def panels(layer: LayerSteps, step: TensorStep) -> tuple[list[Panel], bool]:
    """Corners of a step's tensor and its inputs, and whether colors are identities.

    For the concatenation, cells of the first heads keep their identity, so the panel shows the
    head outputs of every word side by side.
    """
    tensors = [layer.find(name) for name in step.inputs] + [step]
    if step.axes[-1] == AXES["J"]:
        return [*_concatenation(layer, *tensors)], True
    windows = [_window(part, layer.labels) for part in tensors]
    if layer.memory is not None and step.name == "outputs of the cross-attention heads":
        windows.insert(1, _window(layer.memory, layer.memory_labels))
    return windows, False


def _window(step: TensorStep, labels: tuple[str, ...]) -> Panel:
    tokens = labels[:TOKENS_SHOWN]
    values = step.values[..., :TOKENS_SHOWN, :COLUMNS_SHOWN]
    if values.ndim == 3:
        values = values[:2]
    quantity = QUANTITIES.get(step.name, "")
    whole = step.values.shape
    return Panel(step.name, values, step.axes, rows=tokens, quantity=quantity, whole=whole)


def _concatenation(layer: LayerSteps, heads: TensorStep, merged: TensorStep) -> tuple[Panel, Panel]:
    n_heads, width = min(layer.n_heads, HEADS_SHOWN), HEAD_COLUMNS_SHOWN
    tokens = layer.labels[:TOKENS_SHOWN]
    first = heads.values[:n_heads, : len(tokens), :width]
    head, token, column = np.indices(first.shape)
    cells = np.asarray((head * TOKENS_SHOWN + token) * width + column)
    columns = [h * layer.head_size + c for h in range(n_heads) for c in range(width)]
    second = merged.values[: len(tokens), columns]
    return (
        Panel(heads.name, first, heads.axes, rows=tokens, cells=cells, whole=heads.values.shape),
        Panel(
            merged.name,
            second,
            merged.axes,
            rows=tokens,
            columns=[str(column) for column in columns],
            cells=cells.transpose(1, 0, 2).reshape(second.shape),
            whole=merged.values.shape,
            note=f"the first {width} columns of each head",
        ),
    )
