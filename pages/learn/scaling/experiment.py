"""What the size of its input does to a softmax, and what dividing q . k by a power of d_k does.

For entries of q and k drawn independently with mean 0 and variance 1, a dot product over d_k of
them has variance d_k (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, footnote 4; the
course's experiment with four divisors). Entropies are in nats.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.attend import attention_scores, attention_weights, mask_scores
from attention_core.masks import causal_mask

# What q . k is divided by, as the exponent of d_k: d_k ** exponent.
DIVISORS: Mapping[str, float] = {"nothing": 0.0, "√d_k": 0.5, "d_k": 1.0, "d_k²": 2.0}


def softmax_at(logits: Tensor, temperature: float) -> Tensor:
    """Softmax of `logits / temperature`: (..., n) -> (..., n).

    A temperature above 1 evens the weights out, one below 1 sharpens them; dividing scores by
    sqrt(d_k) is a temperature of sqrt(d_k).
    Raises: ValueError for a temperature that is not positive and finite.
    """
    if not (temperature > 0.0 and math.isfinite(temperature)):
        raise ValueError(f"temperature must be positive and finite, got {temperature}")
    return attention_weights(logits / temperature)  # [weights]


def softmax_of_shares(logits: Tensor) -> Tensor:
    """Softmax of the logits over their sum, the article's normalisation: (..., n) -> (..., n).

    The sum acts as a temperature; a negative one turns the order of the weights round.
    Raises: ValueError if a sum is zero.
    """
    if bool(adds_up_to_zero(logits).any()):
        raise ValueError("the logits add up to 0, and nothing can be divided by that")
    return attention_weights(logits / logits.sum(dim=-1, keepdim=True))


def adds_up_to_zero(logits: Tensor) -> Tensor:
    """Whether a row of logits adds up to 0, but for rounding: (..., n) -> (...) of bool."""
    return logits.sum(dim=-1).abs() <= 1e-6 * logits.abs().sum(dim=-1)


def entropy(weights: Tensor) -> Tensor:
    """Entropy of each row in nats: (..., n) -> (...). 0 for one certain key, log(n) for n equal."""
    return -torch.xlogy(weights, weights).sum(dim=-1)


def softmax_jacobian(weights: Tensor) -> Tensor:
    """How each weight answers to each logit: diag(p) - p p^T; (..., n) -> (..., n, n)."""
    return torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]  # [jacobian]


def jacobian_norm(weights: Tensor) -> Tensor:
    """Frobenius norm of `softmax_jacobian`, without making it: (..., n) -> (...).

    The squares of its entries add up to S2 - 2 S3 + S2^2, S2 and S3 the sums of p^2 and p^3. That
    difference is taken as a sum of terms that are not negative, so that it stays exact for a row
    that is almost certain: S2 - 2 S3 + S2^2 = sum_i p_i^2 ((1 - p_i)^2 + S2 - p_i^2).
    """
    squares = weights.square()
    largest = weights.argmax(dim=-1, keepdim=True)
    # 1 - p and S2 - p^2 of the largest weight from the others: no cancellation where p is near 1
    smaller = weights.scatter(-1, largest, 0.0)
    rest = (1.0 - weights).scatter(-1, largest, smaller.sum(dim=-1, keepdim=True))
    total = squares.sum(dim=-1, keepdim=True)
    off = (total - squares).scatter(-1, largest, smaller.square().sum(dim=-1, keepdim=True))
    return (squares * (rest.square() + off)).sum(dim=-1).sqrt()


def uniform_jacobian_norm(n: int) -> float:
    """`jacobian_norm` of n equal weights: sqrt(n - 1) / n.

    Raises: ValueError for n < 2: the softmax of one logit is 1, whatever the logit.
    """
    if n < 2:
        raise ValueError(f"a softmax over {n} logits has no gradient, at least 2 are needed")
    return math.sqrt(n - 1) / n


@dataclass(frozen=True)
class ScaledScores:
    """Dot products under one divisor, measured on random queries and keys.

    variance, spread: mean over the draws of the variance of a draw's scores, and the standard
    deviation of that variance from draw to draw. theory: the variance expected. entropy (nats),
    largest: means over all rows of the softmax. jacobian, jacobian_median: mean and median over the
    rows of the Frobenius norm of the softmax's Jacobian. divisor: what the scores were divided by;
    the gradient that reaches q . k is `jacobian / divisor`.
    """

    d_k: int
    divisor: float
    n_draws: int
    variance: float
    spread: float
    theory: float
    entropy: float
    largest: float
    jacobian: float
    jacobian_median: float

    @property
    def standard_error(self) -> float:
        """Of `variance`, the mean over the draws."""
        return self.spread / math.sqrt(self.n_draws)


def scaling_sweep(
    d_ks: Sequence[int], *, n_draws: int, n_tokens: int, seed: int
) -> dict[str, list[ScaledScores]]:
    """Measure scores of standard-normal q and k under each of `DIVISORS`, for growing d_k.

    Each draw is one Q and one K of (n_tokens, max(d_ks)); for a smaller d_k its first d_k columns
    are taken, so neighbouring sizes share numbers. Returns one list in the order of `d_ks` for each
    divisor.
    Raises: ValueError for sizes below 1, fewer than 2 draws or tokens, or `d_ks` that do not grow.
    """
    if not d_ks or min(d_ks) < 1 or sorted(set(d_ks)) != list(d_ks):
        raise ValueError(f"d_ks must be growing numbers from 1 on, got {list(d_ks)}")
    if n_draws < 2 or n_tokens < 2:
        raise ValueError(f"2 draws and 2 tokens are needed, got {n_draws} and {n_tokens}")
    generator = torch.Generator().manual_seed(seed)
    size = (n_draws, n_tokens, d_ks[-1])
    q, k = torch.randn(size, generator=generator), torch.randn(size, generator=generator)
    results: dict[str, list[ScaledScores]] = {name: [] for name in DIVISORS}
    scores, n_summed = torch.zeros(n_draws, n_tokens, n_tokens), 0
    for d_k in d_ks:
        scores = scores + attention_scores(q[..., n_summed:d_k], k[..., n_summed:d_k])
        n_summed = d_k
        for name, exponent in DIVISORS.items():
            results[name].append(_measure(scores, d_k, d_k**exponent))
    return results


def _measure(scores: Tensor, d_k: int, divisor: float) -> ScaledScores:
    """One divisor: scores (draws, T, S), not yet divided."""
    scaled = scores / divisor
    variances = scaled.flatten(1).var(dim=1)  # [variances] one number a draw
    weights = attention_weights(scaled)
    norms = jacobian_norm(weights)
    return ScaledScores(
        d_k=d_k,
        divisor=divisor,
        n_draws=len(scores),
        variance=float(variances.mean()),
        spread=float(variances.std()),
        theory=d_k / divisor**2,
        entropy=float(entropy(weights).mean()),
        largest=float(weights.amax(dim=-1).mean()),
        jacobian=float(norms.mean()),
        jacobian_median=float(norms.median()),
    )


def weights_at_scale(q: Tensor, k: Tensor, scale: float, *, causal: bool) -> Tensor:
    """The weights of one head whose scores are multiplied by `scale`: (T, D), (T, D) -> (T, T).

    The steps of `attend`, for queries and keys that a model has made already.
    Raises: ValueError for a scale that is not positive and finite.
    """
    if not (scale > 0.0 and math.isfinite(scale)):
        raise ValueError(f"scale must be positive and finite, got {scale}")
    scores = attention_scores(q, k)
    mask = causal_mask(*scores.shape, device=q.device) if causal else None
    masked = scores if mask is None else mask_scores(scores, mask)
    return attention_weights(masked * scale, mask)  # [weights]
