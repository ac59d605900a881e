"""How far a trained model drifts when its key/value heads are averaged.

The GQA paper initializes a grouped model by mean-pooling a multi-head one (Ainslie et al. 2023,
https://arxiv.org/abs/2305.13245, section 2.1) and then trains it for 5% of the original steps.

Dimension letters: T tokens, S keys, H query heads, C width, V vocabulary, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.analysis.distances import cosine_distance, divergence, relative_distance
from attention_core.model.transformer import Transformer


@dataclass(frozen=True)
class PoolingResult:
    """The output of a model for one text.

    hidden: (T, C), after the last layer. weights: (L, H, T, S). logits: (V,), at the last position,
    or None for a model without an output matrix.
    """

    hidden: Tensor
    weights: Tensor
    logits: Tensor | None


@dataclass(frozen=True)
class HiddenStateDrift:
    """The effect of pooling to `n_kv_heads` on one text.

    cosine: (T,), 1 - cosine of each token's last hidden state with the one before pooling.
    relative: (T,), the length of their difference ÷ the length of the original state.
    attention: (L, H), total variation of each head's rows, averaged over the queries: the share of
    its attention that moved to other keys, from 0 to 1.
    divergence: Kullback-Leibler divergence of the next-token distributions, in nats. likeliest: ids
    of the most likely next token before and after. Both are None for a model without predictions.
    """

    n_kv_heads: int
    cosine: Tensor
    relative: Tensor
    attention: Tensor
    divergence: float | None
    likeliest: tuple[int, int] | None


def outcome(model: Transformer, token_ids: Tensor) -> PoolingResult:
    """One forward pass on a text: ids (T,).

    Raises: ValueError if the tokens do not fit the model.
    """
    with torch.inference_mode():
        output = model(token_ids[None], record=True, last_only=True)
        weights = torch.stack([record.weights[0] for record in output.records])
    logits = None if output.logits is None else output.logits[0, -1]
    return PoolingResult(output.hidden[0], weights, logits)


def drift(before: PoolingResult, after: PoolingResult, n_kv_heads: int) -> HiddenStateDrift:
    """Compare two outcomes of the same text.

    Raises: ValueError if the outcomes have different shapes.
    """
    if before.weights.shape != after.weights.shape or before.hidden.shape != after.hidden.shape:
        raise ValueError(
            f"outcomes of one text must match in shape, got weights {tuple(before.weights.shape)} "
            f"and {tuple(after.weights.shape)}"
        )
    change = (after.weights - before.weights).abs().sum(-1).mean(-1) / 2  # (L, H, T, S) -> (L, H)
    kl, likeliest = None, None
    if before.logits is not None and after.logits is not None:
        kl = float(divergence(before.logits, after.logits))
        likeliest = int(before.logits.argmax()), int(after.logits.argmax())
    return HiddenStateDrift(
        n_kv_heads=n_kv_heads,
        cosine=cosine_distance(before.hidden, after.hidden),
        relative=relative_distance(before.hidden, after.hidden),
        attention=change,
        divergence=kl,
        likeliest=likeliest,
    )
