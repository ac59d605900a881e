"""How the size of scores affects a softmax, with four divisors of q . k.

If the entries of q and k are independent with mean 0 and variance 1, their dot product has
variance d_k (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, footnote 4; the
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

# Divisors of q . k, as exponents of d_k.
DIVISORS: Mapping[str, float] = {"nothing": 0.0, "√d_k": 0.5, "d_k": 1.0, "d_k²": 2.0}


def softmax_at(logits: Tensor, temperature: float) -> Tensor:
    """Softmax of `logits / temperature`: (..., n) -> (..., n).

    A temperature above 1 makes the weights more even, one below 1 makes them sharper. Dividing by
    sqrt(d_k) means a temperature of sqrt(d_k).
    Raises: ValueError for a temperature that isn't positive and finite.
    """
    if not (temperature > 0.0 and math.isfinite(temperature)):
        raise ValueError(f"temperature must be positive and finite, got {temperature}")
    return attention_weights(logits / temperature)  # [weights]


def softmax_of_shares(logits: Tensor) -> Tensor:
    """Softmax of logits divided by their sum, as in the article: (..., n) -> (..., n).

    The sum acts as a temperature; a negative sum reverses the order of the weights.
    Raises: ValueError if a sum is zero.
    """
    if bool(sums_to_zero(logits).any()):
        raise ValueError("the logits add up to 0, so they can't be divided by their sum")
    return attention_weights(logits / logits.sum(dim=-1, keepdim=True))


def sums_to_zero(logits: Tensor) -> Tensor:
    """Whether each row adds up to 0, up to rounding: (..., n) -> (...), bool."""
    return logits.sum(dim=-1).abs() <= 1e-6 * logits.abs().sum(dim=-1)


def entropy(weights: Tensor) -> Tensor:
    """Entropy of each row in nats, from 0 to log(n): (..., n) -> (...)."""
    return -torch.xlogy(weights, weights).sum(dim=-1)


def softmax_jacobian(weights: Tensor) -> Tensor:
    """Jacobian of the softmax, diag(p) - p p^T: (..., n) -> (..., n, n)."""
    return torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]  # [jacobian]


def jacobian_norm(weights: Tensor) -> Tensor:
    """Frobenius norm of `softmax_jacobian` without building it: (..., n) -> (...).

    The squared entries add up to S2 - 2 S3 + S2^2, where S2 and S3 are the sums of p^2 and p^3. To
    stay exact for saturated rows, this is computed as a sum of non-negative terms:
    S2 - 2 S3 + S2^2 = sum_i p_i^2 ((1 - p_i)^2 + S2 - p_i^2).
    """
    squares = weights.square()
    largest = weights.argmax(dim=-1, keepdim=True)
    # for the largest weight, compute 1 - p and S2 - p^2 from the others to avoid cancellation
    smaller = weights.scatter(-1, largest, 0.0)
    rest = (1.0 - weights).scatter(-1, largest, smaller.sum(dim=-1, keepdim=True))
    total = squares.sum(dim=-1, keepdim=True)
    off = (total - squares).scatter(-1, largest, smaller.square().sum(dim=-1, keepdim=True))
    return (squares * (rest.square() + off)).sum(dim=-1).sqrt()


def uniform_jacobian_norm(n: int) -> float:
    """`jacobian_norm` of n equal weights: sqrt(n - 1) / n.

    Raises: ValueError for n < 2, because the softmax of a single logit is always 1.
    """
    if n < 2:
        raise ValueError(f"a softmax over {n} logits has no gradient; at least 2 are needed")
    return math.sqrt(n - 1) / n


@dataclass(frozen=True)
class ScaledScores:
    """Dot products under one divisor, measured on random queries and keys.

    variance, spread: mean and standard deviation over the draws of the scores' variance. theory:
    the expected variance. entropy (nats), largest: means over all rows of the softmax. jacobian,
    jacobian_median: mean and median over all rows of the Frobenius norm of the softmax's Jacobian.
    divisor: the divisor of the scores; the gradient that reaches q . k is `jacobian / divisor`.
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
        """The standard error of `variance`."""
        return self.spread / math.sqrt(self.n_draws)


def scaling_sweep(
    d_ks: Sequence[int], *, n_draws: int, n_tokens: int, seed: int
) -> dict[str, list[ScaledScores]]:
    """Measure scores of standard-normal q and k for each divisor and d_k.

    Each draw is one Q and one K of (n_tokens, max(d_ks)). A smaller d_k uses the first d_k columns,
    so different sizes share numbers. Returns a list in the order of `d_ks` for each divisor.
    Raises: ValueError for sizes below 1, fewer than 2 draws or tokens, or `d_ks` not in ascending
    order.
    """
    if not d_ks or min(d_ks) < 1 or sorted(set(d_ks)) != list(d_ks):
        raise ValueError(f"d_ks must be ascending and at least 1, got {list(d_ks)}")
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
    """Measure scores (draws, T, S), not yet divided, under one divisor."""
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
    """Attention weights of one head with a given scale: (T, D), (T, D) -> (T, T).

    Same steps as in `attend`.
    Raises: ValueError for a scale that isn't positive and finite.
    """
    if not (scale > 0.0 and math.isfinite(scale)):
        raise ValueError(f"scale must be positive and finite, got {scale}")
    scores = attention_scores(q, k)
    mask = causal_mask(*scores.shape, device=q.device) if causal else None
    masked = scores if mask is None else mask_scores(scores, mask)
    return attention_weights(masked * scale, mask)  # [weights]
