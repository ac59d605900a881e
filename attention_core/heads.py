"""From one wide tensor to heads and back: the reshaping around attention.

Dimension letters: B batch, T tokens, H heads, D head size, C = H*D width.
"""

from __future__ import annotations

from torch import Tensor


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Unroll the width into heads, then group by head: (B, T, H*D) -> (B, H, T, D).

    The view alone keeps tokens together; viewing as (B, H, T, D) at once would mix them.
    """
    batch_size, n_tokens, width = x.shape
    x = x.view(batch_size, n_tokens, n_heads, width // n_heads)  # (B, T, C) -> (B, T, H, D)
    return x.transpose(1, 2)  # (B, T, H, D) -> (B, H, T, D)


def merge_heads(x: Tensor) -> Tensor:
    """Undo `split_heads`: (B, H, T, D) -> (B, T, H*D), in reading order in memory."""
    x = x.transpose(1, 2).contiguous()  # (B, H, T, D) -> (B, T, H, D)
    return x.flatten(-2)  # (B, T, H, D) -> (B, T, C)
