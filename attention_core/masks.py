"""Masks: which query may see which key. `True` always means "may look"."""

from __future__ import annotations

import torch
from torch import Tensor


def causal_mask(n_queries: int, n_keys: int, *, device: torch.device | str | None = None) -> Tensor:
    """The causal rule `key position <= query position`, with or without a cache.

    The queries are the last `n_queries` of the `n_keys` positions, so the same rule holds for a
    whole sequence (`n_queries == n_keys`) and for new tokens behind a cache.

    Shape: (T, S) of bool, `True` where the query may see the key.
    Raises: ValueError if a size is not positive or there are more queries than keys.
    """
    if n_queries < 1 or n_keys < n_queries:
        raise ValueError(
            f"causal_mask needs 1 <= n_queries <= n_keys, got n_queries={n_queries} and "
            f"n_keys={n_keys}: queries are the last positions of the keys"
        )
    key_positions = torch.arange(n_keys, device=device)
    query_positions = torch.arange(n_keys - n_queries, n_keys, device=device)
    return key_positions <= query_positions[:, None]


def padding_mask(attention_mask: Tensor) -> Tensor:
    """Turn a tokenizer's attention mask into a mask over keys.

    Shape: (B, S) of numbers or bool, non-zero for a real token -> (B, 1, 1, S) of bool, which
    broadcasts over heads and queries.
    """
    return attention_mask.bool()[:, None, None, :]
