"""Contributions of each key to a head's output, compared with attention weights.

A weight determines what share of a value vector is used, but the effect on the residual stream also
depends on the length of that vector after the output projection. A head may give nearly all its
weight to a token whose value contributes almost nothing (Kobayashi et al. 2020,
https://arxiv.org/abs/2004.10102).
"""

from __future__ import annotations

import torch
from torch import Tensor


def value_norms(v: Tensor, out_weight: Tensor) -> Tensor:
    """Length ||v_j W_O|| of a head's output if key j got all the attention.

    Shapes: v (B, H_kv, S, D), out_weight (H*D, C), rows ordered by head -> (B, H, S).
    The bias of the output projection is left out, because it doesn't belong to any head or key.
    Raises: ValueError if the number of rows of `out_weight` isn't a multiple of H_kv * D.
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
    """||alpha_ij v_j W_O|| of each pair: (..., T, S), (..., S) -> (..., T, S).

    Weights are never negative, so scaling a vector by its weight scales the length as well.
    """
    return weights * norms[..., None, :]
