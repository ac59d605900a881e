"""Beyond the trained length: how far the pairs turn, what the slow ones add, every scaling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from pages.learn.position.turned import Vectors
from serving import compute
from serving.cache import cached

if TYPE_CHECKING:
    from torch import Tensor

FACTORS = (2, 4, 8, 16)
N_DISTANCES = 120  # points of a curve
MOST_TRAINED_DISTANCES = 8192  # at which the range within the trained length is looked for
# Of the random core that decodes with a cache: tokens, trained and in all.
SMALL_TRAINED, SMALL_FACTOR = 8, 3


@dataclass(frozen=True)
class SlowPairs:
    """What the slow pairs of a query and a key add to their score, in and beyond the training.

    curves: columns `scaling`, `distance`, `score`. low, high: the range without a scaling within
    the trained length. plain_outside, scaled_outside: how far the curve leaves that range without a
    scaling and with it.
    """

    curves: pd.DataFrame
    low: float
    high: float
    n_slow: int
    plain_outside: float
    scaled_outside: float


def classes() -> dict[str, str]:
    """The class of the core for every scaling, by the name on the page."""
    from pages.learn.position.experiment.longer import scalings

    found = scalings(2.0, 1).items()
    return {name: type(scaling).__name__ for name, scaling in found if scaling is not None}


def reach(found: Vectors, factor: int) -> pd.DataFrame:
    """Each pair's last angle over the last of the training: `scaling`, `pair`, `times`, `turns`."""
    from pages.learn.position.experiment import longer

    length, theta, size = found.trained_length, found.theta, found.head_size
    round_ = longer.turns(size, theta, length).tolist()
    return pd.DataFrame(
        [
            {"scaling": name, "pair": pair, "times": times, "turns": round_[pair]}
            for name, scaling in longer.scalings(factor, length).items()
            for pair, times in enumerate(
                longer.reach(size, theta, length, factor * length, scaling).tolist()
            )
        ]
    )


def slow_pairs(found: Vectors, factor: int, chosen: str) -> SlowPairs:
    """The curves without a scaling and with the chosen one, up to `factor` trained lengths."""
    import torch

    from pages.learn.position.experiment import longer

    length = found.trained_length
    distances = torch.linspace(0, factor * length - 1, N_DISTANCES).long()
    all_scalings = longer.scalings(factor, length)

    def scores(at: Tensor, name: str) -> Tensor:
        scaling = all_scalings[name]
        added = longer.slow_scores(found.query, found.key, at, found.theta, length, scaling)
        return added * found.scale

    plain, scaled = (scores(distances, name) for name in (longer.PLAIN, chosen))
    # on distances of its own, so that the range does not depend on how far the curves go
    within = torch.linspace(0, length - 1, min(length, MOST_TRAINED_DISTANCES)).long()
    trained = scores(within, longer.PLAIN)
    low, high = float(trained.min()), float(trained.max())
    plain_outside, scaled_outside = (
        max(float(curve.max()) - high, low - float(curve.min()), 0.0) for curve in (plain, scaled)
    )
    curves = [
        pd.DataFrame({"scaling": name, "distance": distances.tolist(), "score": curve.tolist()})
        for name, curve in ((longer.PLAIN, plain), (chosen, scaled))
    ]
    n_slow = int((longer.turns(found.head_size, found.theta, length) < 1).sum())
    whole = pd.concat(curves, ignore_index=True)
    return SlowPairs(whole, low, high, n_slow, plain_outside, scaled_outside)


@cached(key=lambda size, theta, length, factor: (size, theta, length, factor))
def every_scaling(size: int, theta: float, length: int, factor: int) -> pd.DataFrame:
    """One row a scaling: its fastest and slowest pair, transformers beside it, and a cache."""
    from pages.learn.position.experiment import longer
    from pretrained.rotary_reference import reference_frequencies

    n_tokens = factor * length
    plain = longer.frequencies(size, theta, n_tokens, None)
    rows = []
    for name, scaling in longer.scalings(factor, length).items():
        ours = longer.frequencies(size, theta, n_tokens, scaling)
        theirs, cosine_factor = reference_frequencies(scaling, size, theta, length, n_tokens)
        rows.append(
            {
                "scaling": name,
                "fastest pair ÷": float(plain[0] / ours[0]),
                "slowest pair ÷": float(plain[-1] / ours[-1]),
                "cosines ×": cosine_factor,
                "from transformers": float((ours / theirs - 1).abs().max()),
                "with a cache": _cache_difference(name),
            }
        )
    return pd.DataFrame(rows)


@cached(key=lambda name: name)
def _cache_difference(name: str) -> float:
    """How far steps with a cache are from one pass, with a scaling of a small random core."""
    import torch

    from pages.learn.position.experiment import longer

    scaling = longer.scalings(SMALL_FACTOR, SMALL_TRAINED)[name]
    with compute.slot(), torch.inference_mode():
        return longer.cache_difference(scaling, SMALL_TRAINED, SMALL_FACTOR)
