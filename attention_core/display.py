"""Short representations of records: shapes as text, and tables and maps in notebooks.

Records contain large tensors, and printing all their values would hide everything else.
"""

from __future__ import annotations

from dataclasses import fields
from html import escape

import torch
from torch import Tensor

MAP_TOKENS = 32  # at most this many rows and columns in the map
MAP_PIXELS = 160


class ShapeReprMixin:
    """Base class for dataclasses of tensors that print shapes; use `repr=False`."""

    def __repr__(self) -> str:
        parts = [f"{name}={text}" for name, text in _field_texts(self)]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>"
            for name, text in _field_texts(self)
        )
        table = f"<table><caption>{escape(type(self).__name__)}</caption>{rows}</table>"
        weights = getattr(self, "weights", None)
        return table + (map_svg(weights) if isinstance(weights, Tensor) else "")


def map_svg(weights: Tensor) -> str:
    """An SVG of attention weights, averaged over the heads of the first batch row.

    Shapes: (..., T, S), cropped to MAP_TOKENS rows and columns. Darker means larger.
    """
    matrix = weights.detach().float().cpu()
    while matrix.dim() > 3:
        matrix = matrix[0]
    if matrix.dim() == 3:
        matrix = matrix.mean(0)
    matrix = matrix[:MAP_TOKENS, :MAP_TOKENS]
    largest = float(matrix.max()) if matrix.numel() else 0.0
    shares = torch.nan_to_num(matrix / (largest or 1.0)).clamp(0, 1)
    n_rows, n_columns = shares.shape
    cells = "".join(
        f'<rect x="{column}" y="{row}" width="1" height="1" fill-opacity="{share:.3f}"/>'
        for row, of_query in enumerate(shares.tolist())
        for column, share in enumerate(of_query)
        if share > 0
    )
    return (
        f'<svg role="img" aria-label="attention weights, mean of all heads" width="{MAP_PIXELS}" '
        f'viewBox="0 0 {n_columns} {n_rows}" fill="#0b5cad" shape-rendering="crispEdges">'
        f"{cells}</svg>"
    )


def _field_texts(record: object) -> list[tuple[str, str]]:
    """Each field that isn't empty, with its shape or value."""
    results = []
    for field in fields(record):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        if value is None or value == ():
            continue
        results.append((field.name, _text(value)))
    return results


def _text(value: object) -> str:
    if isinstance(value, Tensor):
        return str(tuple(value.shape))
    if isinstance(value, tuple):
        return f"{len(value)} x {type(value[0]).__name__}"
    if isinstance(value, ShapeReprMixin):
        return type(value).__name__
    return repr(value)
