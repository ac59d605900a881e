"""The values drawn on the Heads page: weights or contributions, without hidden keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from serving.cache import cached
from serving.runs import Run
from ui.canvas.mosaic.packing import PackedMosaic, pack

WEIGHTS, CONTRIBUTIONS = "weights", "contributions"
UNITS = {WEIGHTS: "weight", CONTRIBUTIONS: "contribution"}
MEASURES = tuple(UNITS)


@dataclass(frozen=True)
class MapOptions:
    """The measure of a map, the keys to hide, and whether to renormalize the others.

    With `renormalise`, the remaining weights of each row are first divided by their sum.
    """

    measure: str = WEIGHTS
    hidden: tuple[int, ...] = ()
    renormalise: bool = False


def values(run: Run, options: MapOptions) -> np.ndarray:
    """Weights or contributions of every head: (layers, H, T, S), read-only, hidden keys 0."""
    if options == MapOptions():
        return run.weights
    return _compute(run, options)


@cached(key=lambda run, options, name: (run.key, options, name))
def pack_mosaic(run: Run, options: MapOptions, *, name: str) -> PackedMosaic:
    """The packed data of the mosaic with the key `name`."""
    return pack(
        values(run, options),
        run.tokens.labels,
        name=name,
        title=f"{run.title}: {options.measure} of every head",
        causal=run.causal,
        value_name=UNITS[options.measure],
    )


def with_gaps(array: np.ndarray, hidden: Sequence[int], smallest: float = 0.0) -> np.ndarray:
    """A copy of (..., T, S) with NaN, not drawn, for hidden keys and values below `smallest`.

    Masked scores (-inf) stay as they are.
    """
    array = array.copy()
    array[..., list(hidden)] = np.nan
    if smallest > 0:
        array[np.isfinite(array) & (array < smallest)] = np.nan
    return array


@cached(key=lambda run, options: (run.key, options))
def _compute(run: Run, options: MapOptions) -> np.ndarray:
    import torch

    from attention_core.analysis.contributions import contributions
    from attention_core.analysis.hide_keys import hide_keys

    hidden = torch.zeros(len(run.tokens), dtype=torch.bool)
    hidden[list(options.hidden)] = True
    weights = hide_keys(run.tensors.weights, hidden, renormalise=options.renormalise)
    if options.measure == CONTRIBUTIONS:
        weights = contributions(weights, run.tensors.value_norms)
    array: np.ndarray = weights.numpy()
    array.setflags(write=False)
    return array
