"""The history of a run: losses and scores by step, and the weights on the probe sequence."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from serving.heads import HeadId
from serving.limits import MAX_FORMING_STEPS
from ui.canvas.codes import Codes

if TYPE_CHECKING:
    from pages.learn.watch_heads_form.experiment.training import Measurement

HEADS = (1, 2, 4, 8)
DROPOUTS = (0.0, 0.1, 0.2, 0.5)
EVERY = 10  # steps between two measurements
TOKENS = "abcdefghijklmnopqrstuvwxyz012345"  # the names of the 32 tokens on this page
BLIND_GUESS = math.log(len(TOKENS))  # the loss if every token gets the same probability


@dataclass(frozen=True)
class TrainingSettings:
    """The visitor's choices; the same settings give the same run.

    one_distance: whether the distance to the repeat is always the same.
    """

    n_heads: int = 4
    seed: int = 0
    mask: bool = True
    scale: bool = True
    dropout: float = 0.0
    one_distance: bool = False

    @property
    def summary(self) -> str:
        """The settings in words."""
        parts = [
            f"{self.n_heads} head{'s' if self.n_heads > 1 else ''} per layer",
            f"seed {self.seed}",
        ]
        parts += ["the same distance every time"] * self.one_distance
        parts += ["mask off"] * (not self.mask) + ["scale off"] * (not self.scale)
        parts += [f"dropout {self.dropout:g}"] * (self.dropout > 0)
        return ", ".join(parts)


@dataclass(frozen=True)
class Moment:
    """The measurement after `step` steps; for its fields see `Measurement`.

    Scores are arrays (layers, heads). codes: the weights on the probe, encoded for the browser;
    None if a stored run omits them.
    """

    step: int
    loss_trained: float
    loss_unseen: float
    right: float
    loss_writing: float
    previous: np.ndarray
    induction: np.ndarray
    induction_trained: np.ndarray
    next: np.ndarray
    codes: Codes | None

    @property
    def best_previous(self) -> tuple[HeadId, float]:
        """The head of layer 0 with the largest previous-token score, and the score."""
        return _best(self.previous, 0)

    @property
    def best_induction(self) -> tuple[HeadId, float]:
        """The head of layer 1 with the largest induction score at unseen distances."""
        return _best(self.induction, 1)


@dataclass
class TrainingHistory:
    """The moments of a run, starting before the first step."""

    settings: TrainingSettings
    moments: list[Moment] = field(default_factory=list)

    @property
    def drop(self) -> Moment | None:
        """The first moment whose loss on trained distances is below half that of a blind guess."""
        return next((m for m in self.moments if m.loss_trained < BLIND_GUESS / 2), None)

    @property
    def moments_with_maps(self) -> dict[int, Moment]:
        """The moments with stored weights, by step."""
        return {m.step: m for m in self.moments if m.codes is not None}

    @property
    def is_finished(self) -> bool:
        """Whether the run has taken all its steps."""
        return bool(self.moments) and self.moments[-1].step >= MAX_FORMING_STEPS

    @property
    def table(self) -> pd.DataFrame:
        """One row per moment: losses, and the scores of every head."""
        rows = []
        for m in self.moments:
            row: dict[str, float] = {
                "step": m.step,
                "loss, trained distances": m.loss_trained,
                "loss, unseen distances": m.loss_unseen,
                "correct predictions, unseen": m.right,
                "loss during generation": m.loss_writing,
            }
            for title, scores in (
                ("previous token", m.previous),
                ("induction", m.induction),
                ("induction, trained distances", m.induction_trained),
                ("next token", m.next),
            ):
                for (layer, head), score in np.ndenumerate(scores):
                    row[f"{title}, {HeadId(layer, head)}"] = float(score)
            rows.append(row)
        return pd.DataFrame(rows)


def moment(step: int, measurement: Measurement, *, causal: bool) -> Moment:
    """Convert a measurement; its weights are stored as bytes, which take a few kilobytes."""
    from ui.canvas.codes import encode

    return Moment(
        step=step,
        loss_trained=measurement.loss_trained,
        loss_unseen=measurement.loss_unseen,
        right=measurement.right,
        loss_writing=measurement.loss_writing,
        previous=measurement.previous.numpy(),
        induction=measurement.induction.numpy(),
        induction_trained=measurement.induction_trained.numpy(),
        next=measurement.next.numpy(),
        codes=encode(measurement.maps.numpy(), causal=causal),
    )


def _best(scores: np.ndarray, layer: int) -> tuple[HeadId, float]:
    head = int(scores[layer].argmax())
    return HeadId(layer, head), float(scores[layer, head])
