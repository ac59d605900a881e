"""One product for all heads, then a view and a transpose, equal one product per head.

Dimension letters: H heads, T tokens, D head size, C width of a token.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_core.attention import MultiHeadAttention
from attention_core.heads import split_heads
from attention_core.model.transformer import Transformer


def query_matrix(model: Transformer, layer: int) -> tuple[Tensor, Tensor | None]:
    """W_q of all heads in a layer, side by side, and its bias: (C, H*D) and (H*D) or None.

    Raises: ValueError for a layer with latent attention.
    """
    block = model.block(layer)
    if not isinstance(block.attention, MultiHeadAttention):
        raise ValueError(f"layer {layer} computes its queries with more than one product")
    width, linear = block.attention.widths[0], block.attention.qkv
    return linear.matrix[:, :width], None if linear.bias is None else linear.bias[:width]


def one_product(x: Tensor, weight: Tensor, bias: Tensor | None, n_heads: int) -> Tensor:
    """Compute all heads' queries with one product: x (T, C), weight (C, H*D) -> (H, T, D)."""
    return split_heads(_product(x, weight, bias)[None], n_heads)[0]


def product_for_each_head(x: Tensor, weight: Tensor, bias: Tensor | None, n_heads: int) -> Tensor:
    """Compute the queries with one product per head: (T, C), (C, H*D) -> (H, T, D)."""
    columns = weight.chunk(n_heads, dim=-1)
    biases = [None] * n_heads if bias is None else bias.chunk(n_heads)
    return torch.stack(
        [_product(x, own, of_head) for own, of_head in zip(columns, biases, strict=True)]
    )


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product = x @ weight
    return product if bias is None else product + bias


def misplaced(n_tokens: int, n_heads: int, head_size: int) -> float:
    """The share of numbers in a wrong position if (T, H*D) is viewed directly as (H, T, D)."""
    numbers = torch.arange(n_tokens * n_heads * head_size).view(n_tokens, n_heads * head_size)
    right = split_heads(numbers[None], n_heads)[0]  # (H, T, D)
    wrong = numbers.view(n_heads, n_tokens, head_size)
    return float((right != wrong).float().mean())
