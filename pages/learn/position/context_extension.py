"""Data for texts beyond the trained length, with and without scaling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from pages.learn.position.rotation import Vectors
from serving import compute
from serving.cache import cached

if TYPE_CHECKING:
    from torch import Tensor

FACTORS = (2, 4, 8, 16)
N_DISTANCES = 120  # points per curve
MAX_TRAINED_DISTANCES = 8192  # sampled to find the range within the trained length
# Sizes for the KV cache test: trained length, and text length as a multiple of it.
SMALL_TRAINED, SMALL_FACTOR = 8, 3


@dataclass(frozen=True)
class SlowPairs:
    """Contribution of the slow pairs to a score, within and beyond the trained length.

    curves: columns `scaling`, `distance`, `score`. low, high: range within the trained length,
    without scaling. plain_outside, scaled_outside: how far the curve leaves that range, without
    and with scaling.
    """

    curves: pd.DataFrame
    low: float
    high: float
    n_slow: int
    plain_outside: float
    scaled_outside: float


def classes() -> dict[str, str]:
    """Class names of all scalings, by their names on the page."""
    from pages.learn.position.experiment.context_extension import scalings

    result = scalings(2.0, 1).items()
    return {name: type(scaling).__name__ for name, scaling in result if scaling is not None}


def reach(vectors: Vectors, factor: int) -> pd.DataFrame:
    """Largest angle of each pair, relative to training, for every scaling.

    Columns: `scaling`, `pair`, `times` (relative angle) and `turns` (full turns in training).
    """
    from pages.learn.position.experiment import context_extension

    length, theta, size = vectors.trained_length, vectors.theta, vectors.head_size
    round_ = context_extension.turns(size, theta, length).tolist()
    return pd.DataFrame(
        [
            {"scaling": name, "pair": pair, "times": times, "turns": round_[pair]}
            for name, scaling in context_extension.scalings(factor, length).items()
            for pair, times in enumerate(
                context_extension.reach(size, theta, length, factor * length, scaling).tolist()
            )
        ]
    )


def slow_pairs(vectors: Vectors, factor: int, choice: str) -> SlowPairs:
    """Curves without and with the chosen scaling, up to `factor` trained lengths."""
    import torch

    from pages.learn.position.experiment import context_extension

    length = vectors.trained_length
    distances = torch.linspace(0, factor * length - 1, N_DISTANCES).long()
    all_scalings = context_extension.scalings(factor, length)

    def scores(at: Tensor, name: str) -> Tensor:
        scaling = all_scalings[name]
        added = context_extension.slow_scores(
            vectors.query, vectors.key, at, vectors.theta, length, scaling
        )
        return added * vectors.scale

    plain, scaled = (scores(distances, name) for name in (context_extension.PLAIN, choice))
    # separate distances, so that the range doesn't depend on the length of the curves
    within = torch.linspace(0, length - 1, min(length, MAX_TRAINED_DISTANCES)).long()
    trained = scores(within, context_extension.PLAIN)
    low, high = float(trained.min()), float(trained.max())
    plain_outside, scaled_outside = (
        max(float(curve.max()) - high, low - float(curve.min()), 0.0) for curve in (plain, scaled)
    )
    curves = [
        pd.DataFrame({"scaling": name, "distance": distances.tolist(), "score": curve.tolist()})
        for name, curve in ((context_extension.PLAIN, plain), (choice, scaled))
    ]
    n_slow = int((context_extension.turns(vectors.head_size, vectors.theta, length) < 1).sum())
    whole = pd.concat(curves, ignore_index=True)
    return SlowPairs(whole, low, high, n_slow, plain_outside, scaled_outside)


@cached(key=lambda size, theta, length, factor: (size, theta, length, factor))
def every_scaling(size: int, theta: float, length: int, factor: int) -> pd.DataFrame:
    """One row per scaling: pair speeds, transformers' values, and a cache test."""
    from pages.learn.position.experiment import context_extension
    from pretrained.rotary_reference import reference_frequencies

    n_tokens = factor * length
    plain = context_extension.frequencies(size, theta, n_tokens, None)
    rows = []
    for name, scaling in context_extension.scalings(factor, length).items():
        ours = context_extension.frequencies(size, theta, n_tokens, scaling)
        theirs, cosine_factor = reference_frequencies(scaling, size, theta, length, n_tokens)
        rows.append(
            {
                "scaling": name,
                "fastest pair ÷": float(plain[0] / ours[0]),
                "slowest pair ÷": float(plain[-1] / ours[-1]),
                "cosines ×": cosine_factor,
                "difference from transformers": float((ours / theirs - 1).abs().max()),
                "difference with a cache": _cache_difference(name),
            }
        )
    return pd.DataFrame(rows)


@cached(key=lambda name: name)
def _cache_difference(name: str) -> float:
    """Logit difference between cached steps and one pass of a small random model."""
    import torch

    from pages.learn.position.experiment import context_extension

    scaling = context_extension.scalings(SMALL_FACTOR, SMALL_TRAINED)[name]
    with compute.slot(), torch.inference_mode():
        return context_extension.cache_difference(scaling, SMALL_TRAINED, SMALL_FACTOR)
