"""What a head adds to the output, key by key: contributions beside weights.

A weight says how much of a value vector is taken; what reaches the residual stream also depends on
the length of that vector behind the output projection. A head may give nearly all its weight to a
token whose value writes nearly nothing (Kobayashi et al. 2020, https://arxiv.org/abs/2004.10102).
"""

from __future__ import annotations

import torch
from torch import Tensor


def value_norms(v: Tensor, out_weight: Tensor) -> Tensor:
    """Lengths ||v_j W_O|| of what each head would write for a key that got all its attention.

    Shapes: v (B, H_kv, S, D), out_weight (H*D, C), rows in the order of the heads -> (B, H, S).
    The bias of the output projection belongs to no head and no key; it is left out.
    Raises: ValueError when the rows of `out_weight` are not a multiple of H_kv * D.
    """
    batch_size, n_kv_heads, n_keys, head_size = v.shape
    n_rows, width = out_weight.shape
    if n_rows % (n_kv_heads * head_size):
        raise ValueError(
            f"an output matrix of {n_rows} rows does not fit {n_kv_heads} key/value heads of "
            f"size {head_size}"
        )
    # (H*D, C) -> (H_kv, G, D, C): query head h reads key/value head h // G
    by_head = out_weight.view(n_kv_heads, -1, head_size, width)
    written = v[:, :, None] @ by_head  # (B, H_kv, 1, S, D) @ (H_kv, G, D, C) -> (B, H_kv, G, S, C)
    return torch.linalg.vector_norm(written, dim=-1).flatten(1, 2)  # (B, H, S)


def contributions(weights: Tensor, norms: Tensor) -> Tensor:
    """||alpha_ij v_j W_O|| of every pair: weights (..., T, S) and norms (..., S) -> (..., T, S).

    A weight is never negative, so the length of the weighted vector is the weighted length.
    """
    return weights * norms[..., None, :]
