"""Assemble the eleven steps: give each tensor its name, axes and positions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from torch import Tensor

from attention_core.positions.rotary import Rotation
from pages.learn.shapes.experiment.index_tracker import IndexTracker
from pages.learn.shapes.experiment.named_tensors import (
    BY_HEAD,
    BY_TOKEN,
    FLAT,
    MATRIX,
    PAIRS,
    NamedTensor,
    ShapeStep,
)


@dataclass(frozen=True)
class Sizes:
    """Number and size of the heads, and the dropout probability."""

    n_heads: int
    n_kv_heads: int
    head_dim: int
    dropout: float = 0.0


def assemble(
    sizes: Sizes,
    *,
    x: Tensor,
    columns: Tensor,
    matrices: Sequence[Tensor],
    biases: Sequence[Tensor | None],
    projected: Sequence[Sequence[Tensor]],
    rotated: Mapping[str, Tensor] = MappingProxyType({}),
    rotation: Rotation | None = None,
    scores: Tensor,
    weighing: Mapping[str, Tensor],
    contexts: Sequence[Tensor],
    output: Tensor,
) -> tuple[ShapeStep, ...]:
    """Give the tensors of the eleven steps their names, axes and positions."""
    three = ("queries", "keys", "values")
    q_width, kv_width = sizes.n_heads * sizes.head_dim, sizes.n_kv_heads * sizes.head_dim
    first = q_width if kv_width < q_width else 0  # shared keys get separate columns
    width = q_width + (kv_width if first else 0) + 1
    batch_size, n_tokens, _ = x.shape
    queries_of = IndexTracker(batch_size, n_tokens, sizes.n_heads, sizes.head_dim, width)
    keys_of = IndexTracker(batch_size, n_tokens, sizes.n_kv_heads, sizes.head_dim, width, first)

    def split(tensors: Sequence[Tensor], axes: tuple[str, ...]) -> tuple[NamedTensor, ...]:
        ways = (queries_of, keys_of, keys_of)
        return tuple(
            way.make_tensor(name, tensor, axes)
            for way, name, tensor in zip(ways, three, tensors, strict=True)
        )

    factors = {
        "scaled": 1.0 / math.sqrt(sizes.head_dim),
        "after dropout": 1.0 / (1.0 - sizes.dropout),
    }

    def of_queries(tensors: Mapping[str, Tensor]) -> tuple[NamedTensor, ...]:
        return tuple(
            NamedTensor(name, tensor, PAIRS, groups=queries_of.pairs, factor=factors.get(name, 1.0))
            for name, tensor in tensors.items()
        )

    flat = tuple(
        replace(tensor, bias=bias)
        for tensor, bias in zip(split(projected[0], FLAT), biases, strict=False)
    )
    grouped = split(projected[2], BY_HEAD) + tuple(
        replace(way.make_tensor(name, tensor, BY_HEAD), rotation=rotation)
        for way, (name, tensor) in zip((queries_of, keys_of), rotated.items(), strict=False)
    )
    context, by_token, merged = (
        queries_of.make_tensor(name, tensor, axes)
        for name, tensor, axes in zip(
            ("context", "context", "merged"), contexts, (BY_HEAD, BY_TOKEN, FLAT), strict=True
        )
    )
    entered = NamedTensor("input", x, FLAT, groups=queries_of.whole(x.shape[-1]))
    left = NamedTensor(
        "output", output, FLAT, groups=queries_of.whole(output.shape[-1]), bias=biases[-1]
    )
    named_matrices = tuple(
        NamedTensor(name, matrix, MATRIX)
        for name, matrix in zip(("W_query", "W_key", "W_value", "W_out"), matrices, strict=True)
    )
    weighed = of_queries(weighing)
    compared = tuple(rotated) or three[:2]
    steps = (
        ("input", (entered,), ()),
        ("choose the sizes", (NamedTensor("columns", columns, ("head", "column")),), ()),
        ("weight matrices", named_matrices, ((2, "columns"),)),
        (
            "queries, keys, values",
            flat,
            ((1, "input"), *((3, matrix.name) for matrix in named_matrices[:3])),
        ),
        (
            "unroll the columns",
            split(projected[1], BY_TOKEN),
            tuple((4, name) for name in three),
        ),
        ("group by head", grouped, tuple((5, name) for name in three)),
        ("attention scores", of_queries({"scores": scores}), tuple((6, name) for name in compared)),
        ("attention weights", weighed, ((7, "scores"),)),
        ("context vectors", (context,), ((8, weighed[-1].name), (6, "values"))),
        ("back to tokens", (by_token,), ((9, "context"),)),
        ("merge heads", (merged, left), ((10, "context"), (3, "W_out"))),
    )
    return tuple(
        ShapeStep(number, title, tensors, width, made_from)
        for number, (title, tensors, made_from) in enumerate(steps, start=1)
    )
