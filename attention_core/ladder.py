"""The ladder from the lectures: from dot products to multi-head attention, one step at a time.

Every class maps (B, T, d_in) to (B, T, d_out), except the wrapper, which returns
(B, T, H * d_out). The first three rungs also work without B. `record(x)` returns all intermediate
tensors; in the wrapper, each head has this method.
Dimension letters: B batch, T tokens, H heads, D head size.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from attention_core.attend import AttentionRecord, attend
from attention_core.heads import merge_heads, split_heads
from attention_core.masks import causal_mask


def simple_self_attention(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Attention without trainable weights: each token is query, key and value.

    The scores aren't scaled.
    Shapes: x (..., T, d_in) -> scores (..., T, T), weights (..., T, T), context (..., T, d_in).
    Source: notebook, section 3.3.
    """
    record = attend(x, x, x, scale=1.0)
    return record.scores, record.weights, record.context


class SelfAttentionV1(nn.Module):
    """One head with three plain parameter matrices, drawn uniformly from [0, 1).

    Shapes: `W_query`, `W_key`, `W_value` are (d_in, d_out); x (..., T, d_in) -> (..., T, d_out).
    Source: notebook, section 3.4.
    """

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def record(self, x: Tensor, *, scale: float | None = None) -> AttentionRecord:
        """Run the forward pass and return every intermediate; `scale` as in `attend`."""
        # [attention]
        return attend(x @ self.W_query, x @ self.W_key, x @ self.W_value, scale=scale)

    def forward(self, x: Tensor) -> Tensor:
        """Context vectors: (..., T, d_in) -> (..., T, d_out)."""
        return self.record(x).context


class SelfAttentionV2(nn.Module):
    """One head with three `nn.Linear` layers: same math, better initialization.

    Shapes: x (..., T, d_in) -> (..., T, d_out).
    Source: notebook, section 3.4; `SimpleAttention` in the article.
    """

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def record(self, x: Tensor) -> AttentionRecord:
        """Run the forward pass and return every intermediate."""
        return attend(self.W_query(x), self.W_key(x), self.W_value(x))  # [attention]

    def forward(self, x: Tensor) -> Tensor:
        """Context vectors: (..., T, d_in) -> (..., T, d_out)."""
        return self.record(x).context


class CausalAttention(nn.Module):
    """One head that sees only the past, with dropout on its attention weights.

    With `causal=False` and no dropout it's the same as `SelfAttentionV2`.

    Shapes: x (B, T, d_in) -> (B, T, d_out), T <= context_length.
    Raises: ValueError for a size below 1 or a dropout outside [0, 1).
    Source: lecture on weight splits; the article's section on masking and dropout.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
        *,
        causal: bool = True,
    ) -> None:
        super().__init__()
        _check_sizes(d_in, d_out, context_length, dropout)
        self.context_length = context_length
        self.dropout = dropout
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def record(self, x: Tensor) -> AttentionRecord:
        """Run the forward pass and return every intermediate; dropout only in training."""
        # [attention]
        return attend(
            self.W_query(x),
            self.W_key(x),
            self.W_value(x),
            mask=_mask(x, self.context_length, self.causal),
            dropout_p=self.dropout if self.training else 0.0,
        )

    def forward(self, x: Tensor) -> Tensor:
        """Context vectors: (B, T, d_in) -> (B, T, d_out), T <= context_length."""
        return self.record(x).context


class MultiHeadAttentionWrapper(nn.Module):
    """Several independent `CausalAttention` heads with concatenated outputs.

    Each head does its own three matrix products, 3 * num_heads altogether. `MultiHeadAttention`
    needs only three.
    Shapes: x (B, T, d_in) -> (B, T, num_heads * d_out).
    Raises: ValueError as in `CausalAttention`, and if num_heads is below 1.
    Source: lecture on weight splits; the article's `MHA_Simple` (which has no mask).
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        *,
        causal: bool = True,
    ) -> None:
        super().__init__()
        if num_heads < 1:
            raise ValueError(f"num_heads must be at least 1, got {num_heads}")
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias, causal=causal)
            for _ in range(num_heads)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Concatenated context vectors: (B, T, d_in) -> (B, T, num_heads * d_out)."""
        return torch.cat([head(x) for head in self.heads], dim=-1)  # [side by side]


class MultiHeadAttention(nn.Module):
    """Multi-head attention: one wide projection each for q, k and v, then a split.

    `d_out` is the width of all heads together; each head has `head_dim = d_out / num_heads`.

    Shapes: x (B, T, d_in) -> (B, T, d_out), T <= context_length.
    Raises: ValueError if num_heads doesn't divide d_out, a size is below 1, or dropout is outside
    [0, 1).
    Source: lecture on weight splits, steps 1 to 11.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        *,
        causal: bool = True,
    ) -> None:
        super().__init__()
        _check_sizes(d_in, d_out, context_length, dropout)
        if num_heads < 1 or d_out % num_heads:
            raise ValueError(f"d_out ({d_out}) must be divisible by num_heads ({num_heads})")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.context_length = context_length
        self.dropout = dropout
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: Tensor) -> Tensor:
        """Context vectors: (B, T, d_in) -> (B, T, d_out), T <= context_length."""
        q = split_heads(self.W_query(x), self.num_heads)  # [queries] (B, T, d_in) -> (B, H, T, D)
        k = split_heads(self.W_key(x), self.num_heads)  # [keys]
        v = split_heads(self.W_value(x), self.num_heads)  # [values]
        context = attend(q, k, v, mask=self.mask(x), dropout_p=self._dropout_p).context
        return self.out_proj(merge_heads(context))  # [output] (B, H, T, D) -> (B, T, d_out)

    def record(self, x: Tensor) -> AttentionRecord:
        """Run the forward pass and return every intermediate, with `output`."""
        projections = (self.W_query, self.W_key, self.W_value)
        q, k, v = (split_heads(projection(x), self.num_heads) for projection in projections)
        record = attend(q, k, v, mask=self.mask(x), dropout_p=self._dropout_p)
        return replace(record, output=self.out_proj(merge_heads(record.context)))

    def mask(self, x: Tensor) -> Tensor | None:
        """The causal mask (T, T), True where a query may see a key; None if not causal.

        Raises: ValueError if T exceeds the context length.
        """
        return _mask(x, self.context_length, self.causal)

    @property
    def _dropout_p(self) -> float:
        return self.dropout if self.training else 0.0


def _mask(x: Tensor, context_length: int, causal: bool) -> Tensor | None:
    n_tokens = x.shape[-2]
    if n_tokens > context_length:
        raise ValueError(f"{n_tokens} tokens exceed the context length of {context_length}")
    return causal_mask(n_tokens, n_tokens, device=x.device) if causal else None


def _check_sizes(d_in: int, d_out: int, context_length: int, dropout: float) -> None:
    if min(d_in, d_out, context_length) < 1:
        raise ValueError(
            f"sizes must be at least 1, got d_in={d_in}, d_out={d_out}, "
            f"context_length={context_length}"
        )
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout must be at least 0 and below 1, got {dropout}")
