"""Two mistakes with shapes: one silently gives wrong numbers, the other raises an error.

Dimension letters: B batch, T tokens, H heads, D head size.
"""

from __future__ import annotations

from torch import Tensor


def view_without_transpose(x: Tensor, n_heads: int) -> Tensor:
    """Make the mistake of viewing (B, T, H*D) directly as (B, H, T, D).

    The shape is right. But a view keeps the order in memory, token after token, so row t of head h
    contains part `(h*T + t) % H` of token `(h*T + t) // H` instead of part h of token t.
    Raises: ValueError if the heads don't divide the width.
    """
    batch_size, n_tokens, width = x.shape
    if n_heads < 1 or width % n_heads:
        raise ValueError(f"the width ({width}) must be divisible by n_heads ({n_heads})")
    return x.contiguous().view(batch_size, n_heads, n_tokens, width // n_heads)


def view_without_contiguous_error(x: Tensor) -> str:
    """PyTorch's error message for `view` right after `transpose`, (B, H, T, D) to (B, T, H*D).

    Empty where PyTorch allows it: with one head or one token the transpose moves nothing, and with
    heads of one column the last two dimensions are still contiguous.
    """
    batch_size, n_heads, n_tokens, head_dim = x.shape
    try:
        x.transpose(1, 2).view(batch_size, n_tokens, n_heads * head_dim)
    except RuntimeError as error:
        return str(error)
    return ""
