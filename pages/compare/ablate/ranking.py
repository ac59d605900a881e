"""Rank a model's heads by switching each off separately, in a background job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pages.compare.ablate import runs
from pages.compare.ablate.runs import AblationTarget
from serving import cache, compute, models
from serving.heads import HeadId
from serving.jobs import BackgroundJob
from serving.limits import check_tokens

MAX_RANK_TOKENS = 128
MAX_AT_ONCE_TOKENS = 32  # up to this length, the page ranks all heads without being asked

QUICK_LAYER_RUNS = 5_000  # one token through one layer counts as one


@dataclass(frozen=True)
class Ranking:
    """The effects of all heads: `sizes` and `seconds` as in `runs.Effect`, (layers, heads)."""

    sizes: np.ndarray
    seconds: np.ndarray

    def order(self) -> list[str]:
        """Names of the heads measured so far, largest effect first."""
        flat = self.sizes.ravel()
        places = [int(i) for i in np.argsort(-flat, kind="stable") if not np.isnan(flat[i])]
        n_heads = self.sizes.shape[1]
        return [str(HeadId(*divmod(place, n_heads))) for place in places]


def is_quick(question: AblationTarget) -> bool:
    """Whether a ranking is fast enough for the page to wait for it."""
    spec = models.spec(question.model)
    runs_of_a_token = spec.n_heads * spec.n_layers * (spec.n_layers + 1) // 2
    return runs_of_a_token * len(question.ids) <= QUICK_LAYER_RUNS


def cached_ranking(question: AblationTarget, kind: str) -> Ranking | None:
    """The cached ranking for a target, or None."""
    return rank_heads.peek(question, kind)


@cache.cached(key=lambda question, kind, measure=None: (*question.key, kind))
def rank_heads(question: AblationTarget, kind: str, measure: Callable[[], Ranking]) -> Ranking:
    """Rank all heads with `measure` and cache the result for all visitors."""
    return measure()


class RankJob(BackgroundJob):
    """Switch off every head of a model, one at a time. The worker writes; the page only reads.

    Raises: OverLimit for a target of more than MAX_RANK_TOKENS tokens.
    """

    def __init__(self, question: AblationTarget, kind: str) -> None:
        super().__init__()
        check_tokens(len(question.ids), MAX_RANK_TOKENS, "a ranking of all heads")
        self.question, self.kind = question, kind
        spec = models.spec(question.model)
        self.n_heads = spec.n_layers * spec.n_heads
        empty = np.full((spec.n_layers, spec.n_heads), np.nan, dtype=np.float32)
        self.ranking = Ranking(empty, empty.copy())
        self.progress = 0.0

    def work(self) -> None:
        """Rank layer by layer; `ranking` contains the results so far."""
        # another visitor's job may have ranked the same target while this one was queued
        self.ranking = rank_heads(self.question, self.kind, self._measure)
        self.progress = 1.0

    def _measure(self) -> Ranking:
        import torch

        from attention_core.analysis.ablation import rank_heads

        model, sizes = models.get(self.question.model), self.ranking.sizes
        ids = torch.tensor(self.question.ids, device=model.device)
        n_layers = len(sizes)
        # a head's effect needs its layer and all later layers
        total = n_layers * (n_layers + 1) / 2
        with torch.inference_mode():
            with compute.slot():
                hidden = model.core(ids[None], last_only=True).hidden[0]
            measure = runs.measure(self.question, hidden)
            parts = rank_heads(model.core, ids, self.kind, measure, before_layer=self.check_stop)  # type: ignore[arg-type]
            for part in compute.steps(parts):
                values = part.values.float().cpu().numpy()
                heads = slice(part.first_head, part.first_head + len(values))
                sizes[part.layer, heads] = values[:, 0]
                self.ranking.seconds[part.layer, heads] = values[:, 1]
                left = (n_layers - part.layer) * (n_layers - part.layer - 1) / 2
                self.progress = 1.0 - left / total
        return self.ranking


def table(question: AblationTarget, ranking: Ranking) -> pd.DataFrame:
    """One row per measured head, largest effect first."""
    rows = []
    for name in ranking.order():
        layer, head = runs.parse(name)
        size, second = ranking.sizes[layer, head], ranking.seconds[layer, head]
        rows.append((name, layer, head, float(size), float(second)))
    return pd.DataFrame(rows, columns=["name", "layer", "head", *measures(question)])


def measures(question: AblationTarget) -> tuple[str, str]:
    """The names of the two measures."""
    if question.mode == "states":
        return "mean 1 − cosine", "mean relative distance"
    return "divergence (nats)", "change of top logit"
