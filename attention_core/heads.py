"""From one wide tensor to heads and back: the reshaping around attention.

Dimension letters: B batch, T tokens, H heads, D head size, C = H*D width.
"""

from __future__ import annotations

from torch import Tensor


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Unroll the width into heads, then group by head: (B, T, H*D) -> (B, H, T, D).

    The view alone keeps tokens together; viewing as (B, H, T, D) at once would mix them.
    Raises: ValueError for a width that does not divide among the heads.
    """
    batch_size, n_tokens, width = x.shape
    if n_heads < 1 or width % n_heads:
        raise ValueError(f"a width of {width} does not divide among {n_heads} heads")
    x = x.view(batch_size, n_tokens, n_heads, width // n_heads)  # [view] (B, T, C) -> (B, T, H, D)
    return x.transpose(1, 2)  # [transpose] (B, T, H, D) -> (B, H, T, D)


def merge_heads(x: Tensor) -> Tensor:
    """Undo `split_heads`: (B, H, T, D) -> (B, T, H*D), in reading order in memory."""
    x = x.transpose(1, 2).contiguous()  # [transpose] (B, H, T, D) -> (B, T, H, D)
    return x.flatten(-2)  # (B, T, H, D) -> (B, T, C)


def columns_of_head(
    side_by_side: Tensor, head: int, n_heads: int, n_kv_heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """What belongs to one head's query, key and value: (..., (H + 2 H_kv)*D) -> (..., D) each.

    side_by_side: all queries, then all keys, then all values, as `Attention` projects them.
    """
    by_head = side_by_side.unflatten(-1, (n_heads + 2 * n_kv_heads, -1))
    key = n_heads + head // (n_heads // n_kv_heads)
    return by_head[..., head, :], by_head[..., key, :], by_head[..., key + n_kv_heads, :]
