"""A query and a key of a real head, rotated to any position and distance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from serving.runs import Run

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.positions.scaling import RopeScaling

N_POSITIONS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 4000)
MAX_DISTANCE = 64
QUERY, KEY, CIRCLE = "query", "key", "circle"
CIRCLE_POINTS = 48


@dataclass(frozen=True)
class Vectors:
    """A query and a key (D,) before rotation, with the model's rotary settings."""

    query: Tensor
    key: Tensor
    theta: float
    trained_length: int
    scaling: RopeScaling | None

    @property
    def head_size(self) -> int:
        """The head size D."""
        return len(self.query)

    @property
    def scale(self) -> float:
        """The model's scale for q . k."""
        return 1.0 / math.sqrt(self.head_size)


@dataclass(frozen=True)
class RotatedPair:
    """The rotated vectors at one position and distance.

    score: q . k / sqrt(D). change: its largest change at this distance over all `N_POSITIONS`
    within the trained length, of which `farthest` is the last. pairs: one row per pair of numbers.
    arrows: data for drawing some of the pairs.
    """

    score: float
    change: float
    farthest: int
    pairs: pd.DataFrame
    arrows: pd.DataFrame


def vectors(run: Run, layer: int, head: int, query: int, key: int) -> Vectors:
    """The query and the key of two tokens of a run, before rotation."""
    from pages.learn.position.experiment.context_extension import trained_length
    from pages.learn.position.experiment.rotation import unrotated_vectors

    config = run.pretrained.core.config
    queries, keys = unrotated_vectors(run.layer(layer), config, head)
    q, k = (rows[place].float().cpu() for rows, place in ((queries, query), (keys, key)))
    return Vectors(q, k, config.rope_theta, trained_length(config), config.rope_scaling)


def rotate_at(found: Vectors, place: int, distance: int) -> RotatedPair:
    """Rotate the key to a position and the query to `distance` tokens after it."""
    import torch

    from pages.learn.position.experiment.rotation import pair_scores, rotate_pair, scores

    fitting = [place for place in N_POSITIONS if place + distance < found.trained_length] or [0]
    places, both = torch.tensor(fitting), (found.query, found.key)
    distances = torch.full_like(places, distance)
    everywhere = scores(*both, places, distances, found.theta, found.scaling)
    here = torch.tensor([place]), torch.tensor([distance])
    q, k = rotate_pair(*both, *here, found.theta, found.scaling)
    parts = pair_scores(q, k)[0] * found.scale
    return RotatedPair(
        score=float(parts.sum()),
        change=float(everywhere.max() - everywhere.min()) * found.scale,
        farthest=fitting[-1],
        pairs=_pairs(found, q[0], k[0], parts, place, distance),
        arrows=_arrows(q[0].numpy(), k[0].numpy()),
    )


def by_distance(found: Vectors, place: int) -> pd.DataFrame:
    """Scores by distance, with the key at position 0 and at `place`."""
    import torch

    from pages.learn.position.experiment.rotation import scores

    distances = torch.arange(MAX_DISTANCE + 1)
    rows = []
    for start in dict.fromkeys((0, place)):
        at_start = torch.full_like(distances, start)
        values = scores(found.query, found.key, at_start, distances, found.theta, found.scaling)
        rows += [
            {"key at": f"position {start}", "distance": distance, "score": score * found.scale}
            for distance, score in enumerate(values.tolist())
        ]
    return pd.DataFrame(rows)


def _pairs(
    found: Vectors, q: Tensor, k: Tensor, parts: Tensor, place: int, distance: int
) -> pd.DataFrame:
    from pages.learn.position.experiment.context_extension import frequencies as speeds

    n_tokens = place + distance + 1
    frequencies = speeds(found.head_size, found.theta, n_tokens, found.scaling).numpy()
    return pd.DataFrame(
        {
            "pair": range(len(frequencies)),
            "radians per token": frequencies,
            "tokens per full turn": 2 * math.pi / frequencies,
            "rotation of the key": place * frequencies,
            "rotation of the query": (place + distance) * frequencies,
            "angle between them": distance * frequencies,
            "adds to the score": parts.numpy(),
        }
    )


def _arrows(q: np.ndarray, k: np.ndarray) -> pd.DataFrame:
    """Four pairs, each scaled so that its longer arrow has length 1."""
    n_pairs = len(q) // 2
    rows: list[dict[str, object]] = []
    for pair in dict.fromkeys((0, n_pairs // 8, n_pairs // 4, n_pairs // 2)):
        name, tips = f"pair {pair}", {QUERY: q[pair::n_pairs], KEY: k[pair::n_pairs]}
        radius = max(float(np.hypot(*tip)) for tip in tips.values()) or 1.0
        for point in range(CIRCLE_POINTS + 1):
            angle = 2 * math.pi * point / CIRCLE_POINTS
            x, y = math.cos(angle), math.sin(angle)
            rows.append({"pair": name, "what": CIRCLE, "x": x, "y": y, "order": point})
        for what, (x, y) in tips.items():
            length, angle = float(np.hypot(x, y)), math.degrees(math.atan2(y, x))
            tip = {"x": float(x) / radius, "y": float(y) / radius}
            rows.append({"pair": name, "what": what, **tip, "length": length, "angle": angle})
    return pd.DataFrame(rows)
