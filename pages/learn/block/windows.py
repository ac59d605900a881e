"""What is drawn of a layer's step: corners of the tensors, and heads side by side."""

from __future__ import annotations

import numpy as np

from pages.learn.block.steps import AXES, LayerSteps, TensorStep
from ui.canvas.tensors import Panel, Quantity

TOKENS_SHOWN, COLUMNS_SHOWN = 6, 6  # the window of values
HEADS_SHOWN, HEAD_COLUMNS_SHOWN = 3, 3  # at the concatenation
# What flows past the parts of a layer, and what they add to it.
QUANTITIES: dict[str, Quantity] = {
    "input": "stream", "residual sum": "stream", "normalised sum": "stream",
    "residual sum with cross-attention": "stream", "normalised cross-attention sum": "stream",
    "second residual sum": "stream", "normalised output": "stream",
    "out projection": "attention", "cross-attention out projection": "attention",
    "feed-forward output": "feed-forward",
}  # fmt: skip
PALETTE = (HEADS_SHOWN, TOKENS_SHOWN * HEAD_COLUMNS_SHOWN)  # a hue a head


def panels(layer: LayerSteps, step: TensorStep) -> tuple[list[Panel], bool]:
    """Windows into a step's tensor and those it is made of; and whether colours are identities.

    At the concatenation the cells of the first heads keep their identity: the window shows, for
    every word, the head outputs side by side.
    """
    tensors = [layer.named(name) for name in step.made_of] + [step]
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
