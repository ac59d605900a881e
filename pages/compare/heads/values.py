"""What the pictures of the Heads page draw: weights or contributions, some keys left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from serving.cache import cached
from serving.runs import Run
from ui.canvas.mosaic.packing import Packed, pack

WEIGHTS, CONTRIBUTIONS = "weights", "contributions"
UNITS = {WEIGHTS: "weight", CONTRIBUTIONS: "contribution"}
MEASURES = tuple(UNITS)


@dataclass(frozen=True)
class MapOptions:
    """How a run is read: what is measured, which keys are left out, and what becomes of the rest.

    With `renormalise` the weights of the keys that are left are divided by their sum, row by row,
    before anything else is done with them.
    """

    measure: str = WEIGHTS
    hidden: tuple[int, ...] = ()
    renormalise: bool = False


def values(run: Run, reading: MapOptions) -> np.ndarray:
    """Weights or contributions of every head (layers, H, T, S), read-only; hidden keys are 0."""
    if reading == MapOptions():
        return run.weights
    return _compute(run, reading)


@cached(key=lambda run, reading, name: (run.key, reading, name))
def packed(run: Run, reading: MapOptions, *, name: str) -> Packed:
    """What the mosaic with the key `name` draws."""
    return pack(
        values(run, reading),
        run.tokens.labels,
        name=name,
        title=f"{run.title}: {reading.measure} of every head",
        causal=run.causal,
        value_name=UNITS[reading.measure],
    )


def with_gaps(array: np.ndarray, hidden: Sequence[int], smallest: float = 0.0) -> np.ndarray:
    """(..., T, S) with NaN, which pictures leave out, for hidden keys and values below `smallest`.

    A masked score, minus infinity, is no value below anything and stays.
    """
    array = array.copy()
    array[..., list(hidden)] = np.nan
    if smallest > 0:
        array[np.isfinite(array) & (array < smallest)] = np.nan
    return array


@cached(key=lambda run, reading: (run.key, reading))
def _compute(run: Run, reading: MapOptions) -> np.ndarray:
    import torch

    from attention_core.analysis.contributions import contributions
    from attention_core.analysis.hide_keys import hide_keys

    hidden = torch.zeros(len(run.tokens), dtype=torch.bool)
    hidden[list(reading.hidden)] = True
    weights = hide_keys(run.tensors.weights, hidden, renormalise=reading.renormalise)
    if reading.measure == CONTRIBUTIONS:
        weights = contributions(weights, run.tensors.value_norms)
    array: np.ndarray = weights.numpy()
    array.setflags(write=False)
    return array
