"""Split a wide tensor into heads, and merge the heads again.

Dimension letters: B batch, T tokens, H heads, D head size, C = H*D width.
"""

from __future__ import annotations

from torch import Tensor


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Split the width into heads: (B, T, H*D) -> (B, H, T, D).

    It takes a view and a transpose. Viewing directly as (B, H, T, D) would mix up the tokens.
    Raises: ValueError if the heads don't divide the width.
    """
    batch_size, n_tokens, width = x.shape
    if n_heads < 1 or width % n_heads:
        raise ValueError(f"a width of {width} can't be divided among {n_heads} heads")
    x = x.view(batch_size, n_tokens, n_heads, width // n_heads)  # [view] (B, T, C) -> (B, T, H, D)
    return x.transpose(1, 2)  # [transpose] (B, T, H, D) -> (B, H, T, D)


def merge_heads(x: Tensor) -> Tensor:
    """Undo `split_heads`: (B, H, T, D) -> (B, T, H*D), contiguous in memory."""
    x = x.transpose(1, 2).contiguous()  # [transpose] (B, H, T, D) -> (B, T, H, D)
    return x.flatten(-2)  # (B, T, H, D) -> (B, T, C)


def columns_of_head(
    side_by_side: Tensor, head: int, n_heads: int, n_kv_heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """One head's query, key and value columns: (..., (H + 2 H_kv)*D) -> (..., D) each.

    side_by_side: all queries, then all keys, then all values, as `MultiHeadAttention` projects
    them.
    """
    by_head = side_by_side.unflatten(-1, (n_heads + 2 * n_kv_heads, -1))
    key = n_heads + head // (n_heads // n_kv_heads)
    return by_head[..., head, :], by_head[..., key, :], by_head[..., key + n_kv_heads, :]
