"""A text's scores without learned matrices, with one and with two, and how to measure them.

Dimension letters: T tokens, H heads, H_kv key/value heads, D head size, C width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.attend import AttentionRecord, attend
from attention_core.attention import MultiHeadAttention
from attention_core.heads import columns_of_head
from attention_core.masks import causal_mask
from attention_core.model.block import LayerRecord
from attention_core.model.transformer import Transformer


@dataclass(frozen=True)
class HeadMatrices:
    """A head's learned matrices for queries, keys and values: (C, D) each."""

    query: Tensor
    key: Tensor
    value: Tensor

    @property
    def n_numbers(self) -> int:
        """The number of parameters in all three."""
        return self.query.numel() + self.key.numel() + self.value.numel()


def head_matrices(model: Transformer, layer: int, head: int) -> HeadMatrices:
    """Copy one head's matrices; several heads may share those of keys and values.

    Raises: ValueError for a layer or a head that the model doesn't have, and for latent attention.
    """
    config = model.config
    if not (0 <= layer < config.n_layers and 0 <= head < config.n_heads):
        raise ValueError(
            f"there is no L{layer}H{head}: the model has {config.n_layers} layers with "
            f"{config.n_heads} heads"
        )
    attention = model.get_submodule(f"blocks.{layer}.attention")
    if not isinstance(attention, MultiHeadAttention):
        raise ValueError("latent attention has no W_q, W_k and W_v per head")
    columns = columns_of_head(attention.qkv.matrix.detach(), head, config.n_heads, config.kv_heads)
    return HeadMatrices(*(matrix.clone() for matrix in columns))


@dataclass(frozen=True)
class ScoreVariants:
    """One head's attention computed in four ways; records have no batch and head dimensions.

    x: the input of attention, (T, C). projected: x times W_q, W_k and W_v (plus biases), before
    any rotation, (T, D) each. plain: x is query, key and value, with a scale of 1. scaled: the
    same with 1/sqrt(C). same: the keys are the queries too. head: the actual head.
    """

    x: Tensor
    projected: tuple[Tensor, Tensor, Tensor]
    plain: AttentionRecord
    scaled: AttentionRecord
    same: AttentionRecord
    head: AttentionRecord


def score_variants(model: Transformer, layer: LayerRecord, head: int) -> ScoreVariants:
    """Compute the four ways for the first text of a recorded layer, with the model's mask.

    Raises: ValueError for a head that the layer doesn't have, and for latent attention.
    """
    record, config = layer.attention, model.config
    if not 0 <= head < record.q.shape[1]:
        raise ValueError(f"head {head} is not one of 0 to {record.q.shape[1] - 1}")
    if record.projected is None:
        raise ValueError("latent attention has no queries, keys and values per head from x")
    kv_head = head // config.group_size
    x, q = layer.attention_reads[0], record.q[0, head]
    k, v = record.k[0, kv_head], record.v[0, kv_head]
    mask = causal_mask(len(x), len(x), device=x.device) if config.causal else None
    of_query, of_key, of_value = columns_of_head(
        record.projected[0], head, config.n_heads, config.kv_heads
    )
    plain = attend(x, x, x, mask=mask, scale=1.0)  # [plain]
    scaled = attend(x, x, x, mask=mask, scale=1.0 / math.sqrt(x.shape[-1]))
    same = attend(k, k, v, mask=mask, scale=record.scale)
    as_it_is = attend(q, k, v, mask=mask, scale=record.scale)  # [learned]
    return ScoreVariants(x, (of_query, of_key, of_value), plain, scaled, same, as_it_is)


def asymmetry(scores: Tensor) -> float:
    """Asymmetry of scores (T, T): 0 for a symmetric matrix, at most 1.

    The sum of |s_ij - s_ji| over all pairs, divided by the sum of |s_ij| + |s_ji|.
    """
    size = (scores.abs() + scores.mT.abs()).sum() - 2.0 * scores.diagonal().abs().sum()
    return float((scores - scores.mT).abs().sum() / size) if size > 0 else 0.0  # [asymmetry]


def own_weight(weights: Tensor) -> float:
    """The mean weight that a token gives to itself, over the rows of weights (T, T)."""
    return float(weights.diagonal().mean())


def own_first(weights: Tensor) -> int:
    """Count the rows of weights (T, T) in which a token's own weight is the largest."""
    return int((weights.diagonal() >= weights.max(dim=-1).values).sum())


def head_difference(weights: Tensor) -> float:
    """How much the heads' weights (H, T, T) differ on average, from 0 to 1.

    Half the sum of |a - b| over a row is the weight that heads a and b put on different tokens.
    The mean is over all rows and all pairs of heads; 0 for a single head.
    """
    n_heads = len(weights)
    if n_heads < 2:
        return 0.0
    first, second = torch.triu_indices(n_heads, n_heads, offset=1)
    return float((weights[first] - weights[second]).abs().sum(dim=-1).mean() / 2.0)


def n_changed(before: Tensor, after: Tensor, tolerance: float = 1e-5) -> int | None:
    """Count the numbers that differ by more than `tolerance`; None if the shapes differ."""
    if before.shape != after.shape:
        return None
    return int(((before - after).abs() > tolerance).sum())  # [changed]
