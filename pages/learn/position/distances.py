"""Sinusoidal and learned position tables, with similarity by distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from serving import models
from serving.cache import cached

SINUSOIDS = "sinusoids"
WIDTHS = (8, 16, 32, 64, 128)
N_SINUSOIDS = 32  # positions drawn
COUNTS = (16, 32, 64, 128)  # positions compared in a learned table


@dataclass(frozen=True)
class Sinusoids:
    """The sinusoidal table (N, C) and the dot products of its rows (N, N).

    by_distance: columns `distance`, `mean`, `low`, `high` over all pairs of positions.
    """

    table: np.ndarray
    products: np.ndarray
    by_distance: pd.DataFrame

    @property
    def spread(self) -> float:
        """The largest difference between pairs at the same distance."""
        return _spread(self.by_distance)


@dataclass(frozen=True)
class LearnedPositions:
    """Cosines (N, N) of the first rows of a model's position table.

    by_distance: columns `table` (the model's title, or `SINUSOIDS` of the same width), `distance`,
    `mean`, `low`, `high`. shape: shape of the whole table, (positions, C).
    """

    cosines: np.ndarray
    by_distance: pd.DataFrame
    shape: tuple[int, int]

    @property
    def means(self) -> list[float]:
        """Mean cosines of the learned rows, by distance starting at 0."""
        own = self.by_distance[self.by_distance["table"] != SINUSOIDS]
        means: list[float] = own["mean"].tolist()
        return means

    @property
    def spread(self) -> float:
        """The largest difference between pairs at the same distance."""
        return _spread(self.by_distance[self.by_distance["table"] != SINUSOIDS])


@cached(key=lambda width: width)
def sinusoids(width: int) -> Sinusoids:
    """The sinusoidal position vectors from the 2017 paper, with `width` columns."""
    from attention_core.model.original_transformer import sinusoids as of_2017
    from pages.learn.position.experiment.distances import dot_products

    table = of_2017(N_SINUSOIDS, width)
    products = dot_products(table)
    return Sinusoids(table.numpy(), products.numpy(), _by_distance(products))


def products_from(result: Sinusoids, position: int) -> pd.DataFrame:
    """Dot products of three positions with all others.

    Columns: `from`, `distance` (signed) and `product`.
    """
    rows = []
    for start in sorted({0, position, N_SINUSOIDS - 1}):
        for other in range(N_SINUSOIDS):
            product = float(result.products[start, other])
            name = f"position {start}"
            rows.append({"from": name, "distance": other - start, "product": product})
    return pd.DataFrame(rows)


def _key(name: str, count: int) -> tuple[object, ...]:
    return models.key(name), count


@cached(key=_key)
def learned_positions(name: str, count: int) -> LearnedPositions:
    """The first `count` rows of a model's learned position table.

    Raises: ValueError for a model without such a table. Other errors: as in loading a model.
    """
    from attention_core.model.original_transformer import sinusoids as of_2017
    from pages.learn.position.experiment.distances import cosines

    model = models.get(name)
    table = model.core.positions
    if table is None:
        raise ValueError(
            f"{model.spec.title} has no position table because it uses rotary positions."
        )
    rows = table[:count].detach().float().cpu()
    own = cosines(rows)
    of_sinusoids = cosines(of_2017(len(rows), rows.shape[1] // 2 * 2))
    both = [
        _by_distance(own).assign(table=model.spec.title),
        _by_distance(of_sinusoids).assign(table=SINUSOIDS),
    ]
    n_positions, width = table.shape
    return LearnedPositions(own.numpy(), pd.concat(both, ignore_index=True), (n_positions, width))


def _by_distance(values: object) -> pd.DataFrame:
    from torch import Tensor

    from pages.learn.position.experiment.distances import by_distance

    assert isinstance(values, Tensor)
    result = by_distance(values)
    columns = {"mean": result.mean, "low": result.low, "high": result.high}
    return pd.DataFrame(
        {"distance": range(len(values)), **{n: c.tolist() for n, c in columns.items()}}
    )


def _spread(table: pd.DataFrame) -> float:
    return float((table["high"] - table["low"]).max())
