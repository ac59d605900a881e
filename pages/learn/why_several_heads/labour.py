"""Who does what among the heads of one layer, and what is lost when the layer has fewer of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from serving import compute
from serving.cache import cached
from serving.runs import Run
from ui.text.number_text import written
from ui.widgets.progress import Report, Reporter

if TYPE_CHECKING:
    from attention_core.analysis.head_statistics import TextWeights

NATS, TURNED = "divergence (nats)", "1 − cosine"
ALONE, OFF = "only this head is left", "only this head is off"


@dataclass(frozen=True)
class Losses:
    """What a model loses on a text when heads of one layer are off.

    unit: what all numbers are, NATS or TURNED. without_any: all heads of the layer are off.
    alone: all but head h. off: head h alone. seconds: that all runs took.
    """

    unit: str
    without_any: float
    alone: tuple[float, ...]
    off: tuple[float, ...]
    seconds: float

    @property
    def table(self) -> pd.DataFrame:
        """Two rows a head: `head`, `heads` (ALONE or OFF), `lost`."""
        return pd.DataFrame(
            [
                {"head": head, "heads": name, "lost": lost}
                for name, losses in ((ALONE, self.alone), (OFF, self.off))
                for head, lost in enumerate(losses)
            ]
        )


@cached(key=lambda run: run.key)
def variety(run: Run) -> np.ndarray:
    """How far apart the maps of two heads of a layer are on average, (L,); NaN for one token."""
    from pages.learn.why_several_heads.experiment.division import (
        map_distances,
        mean_distance_of_pairs,
    )

    layers = [_attention(run, layer) for layer in range(len(run.weights))]
    means = [float(mean_distance_of_pairs(map_distances(layer))) for layer in layers]
    return np.array(means)


@cached(key=lambda run, layer: (*run.key, layer))
def distances(run: Run, layer: int) -> np.ndarray:
    """How unlike the maps of every two heads of a layer are: (H, H), from 0 to 1."""
    from pages.learn.why_several_heads.experiment.division import map_distances

    pairs: np.ndarray = map_distances(_attention(run, layer)).numpy()
    return pairs


@cached(key=lambda run, layer: (*run.key, layer))
def jobs(run: Run, layer: int) -> pd.DataFrame:
    """One row a job and head: `job`, `head`, `share` of the head's attention."""
    from pages.learn.why_several_heads.experiment import division

    return pd.DataFrame(
        [
            {"job": job, "head": head, "share": share}
            for job, shares in division.jobs(_attention(run, layer)).items()
            for head, share in enumerate(shares.tolist())
        ]
    )


@cached(key=lambda run, layer, report=None: (*run.key, layer))
def losses(run: Run, layer: int, report: Report | None = None) -> Losses:
    """Run the text again with the layer's heads off: all, all but one, and one.

    A decoder: divergence of its predictions, mean over all tokens. An encoder: 1 - cosine of the
    vectors that leave it, mean over all tokens. report: is told how many runs are over.
    """
    import torch

    from attention_core.analysis.ablation import logits_from
    from pages.learn.why_several_heads.experiment import division

    model, reporter = run.pretrained, Reporter(report)
    predicts = model.spec.role == "decoder"
    lost = division.prediction_loss(logits_from(model.core)) if predicts else division.state_loss
    begin, values = time.perf_counter(), []
    with torch.inference_mode():
        for value in compute.steps(
            division.losses(model.core, run.state(layer), layer, lost, before_layer=reporter.layer)
        ):
            values.append(value)
            reporter.unit()
    n_heads = model.core.config.n_heads
    return Losses(
        NATS if predicts else TURNED,
        values[0],
        tuple(values[1 : 1 + n_heads]),
        tuple(values[1 + n_heads :]),
        time.perf_counter() - begin,
    )


def who_does_what(table: pd.DataFrame) -> str:
    """A sentence that names for each job of `jobs` the head that gives it the largest share."""
    rows = table.loc[table.groupby("job", sort=False)["share"].idxmax()]
    rows = rows[rows["share"] >= 0.005]  # what no head does has no head that does it most
    parts = [f"H{row.head} {row.share:.0%} to {row.job}" for row in rows.itertuples()]
    return (
        f"The head that gives each the largest share of its attention: {', '.join(parts)}. The "
        "rows overlap: the percents of a head need not add up to 100."
    )


def how_unlike(distances: np.ndarray, variety: np.ndarray, layer: int) -> str:
    """Sentences about the heads that differ most and least, and about the layer among others."""
    n_heads = len(distances)
    first, second = np.triu_indices(n_heads, 1)
    between = distances[first, second]
    if not len(between):
        return "A layer with one head has nothing to compare."
    far, near = between.argmax(), between.argmin()
    return (
        f"H{first[far]} and H{second[far]} differ most ({between[far]:.2f}), H{first[near]} and "
        f"H{second[near]} least ({between[near]:.2f}). The mean is {variety[layer]:.2f} here, and "
        f"{variety.mean():.2f} over all layers."
    )


def what_is_lost(losses: Losses, layer: int) -> str:
    """Sentences about the best and the worst head to be left with."""
    best, worst = int(np.argmin(losses.alone)), int(np.argmax(losses.alone))
    off = int(np.argmax(losses.off))
    n_better = sum(lost < losses.without_any for lost in losses.alone)
    changes = "the predictions change by" if losses.unit == NATS else "the last vectors turn by"
    return (
        f"With H{best} alone in layer {layer} {changes} {written(losses.alone[best], '.3g')}, "
        f"with H{worst} alone by {written(losses.alone[worst], '.3g')}, and with no head by "
        f"{written(losses.without_any, '.3g')}. "
        f"{n_better} of {len(losses.alone)} heads alone are better than none: the layers after "
        f"this one were trained with all of them. Switched off by itself, H{off} is missed most "
        f"({written(losses.off[off], '.3g')})."
    )


def _attention(run: Run, layer: int) -> TextWeights:
    import torch

    from attention_core.analysis.head_statistics import TextWeights

    return TextWeights(
        run.tensors.weights[layer],
        torch.tensor(run.tokens.ids),
        torch.tensor(run.tokens.special),
        run.causal,
    )
