"""Attention masks: which query may see which key. `True` always means visible."""

from __future__ import annotations

import torch
from torch import Tensor

from attention_core.checks import require_int


def causal_mask(
    n_queries: int,
    n_keys: int,
    *,
    window: int | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """Causal mask: a query sees the keys at its own and at earlier positions.

    The queries are the last `n_queries` of the `n_keys` positions. So the same rule works for a
    whole sequence (`n_queries == n_keys`) and for new tokens after cached ones.

    With a `window` of w, a query sees only the last w of those keys, including its own. That's
    sliding-window attention (Beltagy et al. 2020, https://arxiv.org/abs/2004.05150; Mistral,
    https://arxiv.org/abs/2310.06825).

    Shape: (T, S), bool, `True` where the query may see the key.
    Raises: ValueError if a size isn't a whole number of at least 1, or if there are more queries
    than keys.
    """
    for name, size in (("n_queries", n_queries), ("n_keys", n_keys), ("window", window)):
        if size is not None:
            require_int(name, size)
    if n_keys < n_queries:
        raise ValueError(
            f"causal_mask needs n_queries <= n_keys, got n_queries={n_queries} and "
            f"n_keys={n_keys}: the queries are the last of the key positions"
        )
    key_positions = torch.arange(n_keys, device=device)
    query_positions = torch.arange(n_keys - n_queries, n_keys, device=device)[:, None]
    mask = key_positions <= query_positions  # [mask]
    return mask if window is None else mask & (key_positions > query_positions - window)


def padding_mask(attention_mask: Tensor) -> Tensor:
    """Turn a tokenizer's attention mask into a mask over keys.

    Shape: (B, S), numbers or bool, non-zero for a real token -> (B, 1, 1, S), bool, which
    broadcasts over heads and queries.
    """
    return attention_mask.bool()[:, None, None, :]
