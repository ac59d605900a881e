"""What the heads of one layer do, and what is lost if some of them are switched off."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from serving import compute
from serving.cache import cached
from serving.runs import Run
from ui.text.formatting import format_number
from ui.widgets.progress import Report, Reporter

if TYPE_CHECKING:
    from attention_core.analysis.head_statistics import TextWeights

NATS, ROTATION = "divergence (nats)", "1 − cosine"
ALONE, OFF = "only this head is on", "only this head is off"


@dataclass(frozen=True)
class HeadLosses:
    """How much a model's output changes on a text if heads of one layer are switched off.

    unit: the unit of all numbers, NATS or TURNED. without_any: all heads of the layer are off.
    alone: all heads except h are off. off: only head h is off. seconds: total time of all runs.
    """

    unit: str
    without_any: float
    alone: tuple[float, ...]
    off: tuple[float, ...]
    seconds: float

    @property
    def table(self) -> pd.DataFrame:
        """Two rows per head: `head`, `heads` (ALONE or OFF), `lost`."""
        return pd.DataFrame(
            [
                {"head": head, "heads": name, "lost": lost}
                for name, losses in ((ALONE, self.alone), (OFF, self.off))
                for head, lost in enumerate(losses)
            ]
        )


@cached(key=lambda run: run.key)
def variety(run: Run) -> np.ndarray:
    """The mean distance of two heads' maps in each layer, (L,); NaN for a single token."""
    from pages.learn.why_several_heads.experiment.division import (
        map_distances,
        mean_distance_of_pairs,
    )

    layers = [_attention(run, layer) for layer in range(len(run.weights))]
    means = [float(mean_distance_of_pairs(map_distances(layer))) for layer in layers]
    return np.array(means)


@cached(key=lambda run, layer: (*run.key, layer))
def distances(run: Run, layer: int) -> np.ndarray:
    """The distances of every two heads' maps in a layer: (H, H), from 0 to 1."""
    from pages.learn.why_several_heads.experiment.division import map_distances

    pairs: np.ndarray = map_distances(_attention(run, layer)).numpy()
    return pairs


@cached(key=lambda run, layer: (*run.key, layer))
def role_shares(run: Run, layer: int) -> pd.DataFrame:
    """One row per job and head: `job`, `head`, `share` of the head's attention."""
    from pages.learn.why_several_heads.experiment import division

    return pd.DataFrame(
        [
            {"job": job, "head": head, "share": share}
            for job, shares in division.head_roles(_attention(run, layer)).items()
            for head, share in enumerate(shares.tolist())
        ]
    )


@cached(key=lambda run, layer, report=None: (*run.key, layer))
def losses(run: Run, layer: int, report: Report | None = None) -> HeadLosses:
    """Rerun the text with heads of the layer switched off: all, all but one, and one.

    For a decoder, measures the divergence of its predictions; for an encoder, 1 - cosine of its
    final vectors; both as the mean over all tokens. report: gets the number of finished runs.
    """
    import torch

    from attention_core.analysis.ablation import logits_function
    from pages.learn.why_several_heads.experiment import division

    model, reporter = run.pretrained, Reporter(report)
    predicts = model.spec.role == "decoder"
    lost = (
        division.prediction_loss(logits_function(model.core)) if predicts else division.state_loss
    )
    begin, values = time.perf_counter(), []
    with torch.inference_mode():
        for value in compute.steps(
            division.losses(model.core, run.state(layer), layer, lost, before_layer=reporter.layer)
        ):
            values.append(value)
            reporter.unit()
    n_heads = model.core.config.n_heads
    return HeadLosses(
        NATS if predicts else ROTATION,
        values[0],
        tuple(values[1 : 1 + n_heads]),
        tuple(values[1 + n_heads :]),
        time.perf_counter() - begin,
    )


def roles_sentence(table: pd.DataFrame) -> str:
    """Name the head with the largest share for each job in `role_shares`."""
    rows = table.loc[table.groupby("job", sort=False)["share"].idxmax()]
    rows = rows[rows["share"] >= 0.005]  # leave out jobs that no head does
    parts = [f"H{row.head} ({row.share:.0%} to {row.job})" for row in rows.itertuples()]
    return (
        f"These heads attend most to each kind of token: {', '.join(parts)}. A head's percentages "
        "don't have to add up to 100, because the kinds overlap."
    )


def difference_sentence(distances: np.ndarray, variety: np.ndarray, layer: int) -> str:
    """Name the heads that differ most and least, and compare the layer with the others."""
    n_heads = len(distances)
    first, second = np.triu_indices(n_heads, 1)
    between = distances[first, second]
    if not len(between):
        return "This layer has only one head, so there is nothing to compare."
    far, near = between.argmax(), between.argmin()
    return (
        f"H{first[far]} and H{second[far]} differ most ({between[far]:.2f}), and H{first[near]} "
        f"and H{second[near]} differ least ({between[near]:.2f}). The mean distance is "
        f"{variety[layer]:.2f} in this layer and {variety.mean():.2f} over all layers."
    )


def loss_sentence(losses: HeadLosses, layer: int) -> str:
    """Describe the best and the worst single head, and the most important one."""
    best, worst = int(np.argmin(losses.alone)), int(np.argmax(losses.alone))
    off, n_heads = int(np.argmax(losses.off)), len(losses.alone)
    n_better = sum(lost < losses.without_any for lost in losses.alone)
    outputs, unit = (
        ("the predictions change", "nats")
        if losses.unit == NATS
        else ("the final vectors change", "(1 − cosine)")
    )
    return (
        f"If H{best} is the only head left in layer {layer}, {outputs} least, by "
        f"{format_number(losses.alone[best], '.3g')} {unit}. If H{worst} is the only one left, "
        "they "
        f"change most, by {format_number(losses.alone[worst], '.3g')}. Without any head, it's "
        f"{format_number(losses.without_any, '.3g')}. "
        f"{n_better} of {n_heads} heads on their own are better than no heads"
        f"{'' if n_better == n_heads else '; later layers were trained with all of them'}. "
        f"If you switch off a single head, the loss is largest for H{off} "
        f"({format_number(losses.off[off], '.3g')})."
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
