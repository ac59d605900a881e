"""Test whether a layer depends on the order of its tokens, part by part.

Dimension letters: B batch, T tokens, C width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attention_core.checks import require_finite
from attention_core.masks import causal_mask
from attention_core.model.block import Block
from attention_core.model.original_transformer import DecoderLayer
from attention_core.positions.rotary import Rotation


@dataclass(frozen=True)
class EquivarianceCheck:
    """Whether a function commutes with reordering its tokens.

    `output_permuted` is f(x) with its tokens reordered; `input_permuted` is f of the reordered
    tokens. Both are (T, C').
    """

    output_permuted: Tensor
    input_permuted: Tensor

    @property
    def difference(self) -> float:
        """The largest absolute difference; 0, up to rounding, if order doesn't matter."""
        return float((self.output_permuted - self.input_permuted).abs().max())

    @property
    def largest(self) -> float:
        """The largest absolute value, to compare the difference with."""
        return float(self.output_permuted.abs().max())


def check_equivariance(
    function: Callable[[Tensor], Tensor], x: Tensor, order: Sequence[int]
) -> EquivarianceCheck:
    """Reorder the tokens of x (T, ...) before and after a function with output (B, T, C).

    Raises: ValueError if `order` isn't a permutation, NotFiniteError if results are infinite or
    NaN.
    """
    if sorted(order) != list(range(x.shape[0])):
        raise ValueError(f"order must have each of {x.shape[0]} positions once, got {list(order)}")
    places = torch.tensor(list(order), dtype=torch.long)
    results = EquivarianceCheck(function(x[None])[0][places], function(x[places][None])[0])
    for rows in (results.output_permuted, results.input_permuted):
        require_finite("outputs", rows)
    return results


def check_layer_equivariance(
    layer: Block | DecoderLayer,
    tokens: Tensor,
    order: Sequence[int],
    embed: Callable[[Tensor, bool], Tensor],
    rotation: Rotation | None = None,
) -> dict[str, EquivarianceCheck]:
    """Test whether each part of a layer depends on token order.

    tokens: (T,) ids or (T, C) vectors. embed: `embed(tokens, positions)` turns a batch of them into
    (B, T, C), with or without positions. rotation: for rotary positions, if they're used.
    Raises: ValueError if `order` isn't a permutation.
    """

    def attention(x: Tensor, mask: Tensor | None, rotation: Rotation | None) -> Tensor:
        output: Tensor = layer.attention(x, mask=mask, positions=rotation)
        return output

    pre = isinstance(layer, Block) and layer.pre_norm
    attention_norm: nn.Module = layer.attention_norm if pre else nn.Identity()
    mlp_norm: nn.Module = layer.mlp_norm if pre else nn.Identity()
    causal = causal_mask(len(order), len(order), device=tokens.device)

    def reads(x: Tensor, positions: bool = False) -> Tensor:
        return attention_norm(embed(x, positions))

    parts: dict[str, Callable[[Tensor], Tensor]] = {
        "feed-forward": lambda x: layer.mlp(mlp_norm(embed(x, False))),
        "normalisation": lambda x: layer.mlp_norm(embed(x, False)),
        "attention, no mask, no positions": lambda x: attention(reads(x), None, None),
        "attention, causal mask": lambda x: attention(reads(x), causal, None),
        "attention, positions": lambda x: attention(reads(x, True), None, rotation),
    }
    return {name: check_equivariance(part, tokens, order) for name, part in parts.items()}


def permutation(n_tokens: int, kind: str, seed: int = 0) -> list[int]:
    """An order of n tokens: "reversed", "rotated" by one, or "shuffled" with a seed.

    Raises: ValueError for any other name.
    """
    if kind == "reversed":
        return list(range(n_tokens))[::-1]
    if kind == "rotated":
        return [*range(1, n_tokens), 0]
    if kind == "shuffled":
        return torch.randperm(n_tokens, generator=torch.Generator().manual_seed(seed)).tolist()
    raise ValueError(f'how must be "reversed", "rotated" or "shuffled", got {kind!r}')
