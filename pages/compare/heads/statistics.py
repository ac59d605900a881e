"""Statistics of all heads, on a text and on random tokens repeated twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pretrained import Pretrained
from serving import compute, models
from serving.cache import cached
from serving.runs import Run

if TYPE_CHECKING:
    from attention_core.analysis.head_statistics import Statistic


def definitions() -> tuple[Statistic, ...]:
    """The statistics in column order: names, titles, definitions and ranges."""
    from attention_core.analysis.head_statistics import STATISTICS

    return STATISTICS


@cached(key=lambda run: run.key)
def table(run: Run) -> pd.DataFrame:
    """One row per head, layer by layer: `layer`, `head`, and a column for each statistic.

    Statistics that don't apply to the text or model are NaN. The table is cached, so don't modify
    it.
    """
    import torch

    from attention_core.analysis.head_statistics import STATISTICS, TextWeights

    text = TextWeights(
        run.tensors.weights,
        torch.tensor(run.tokens.ids),
        torch.tensor(run.tokens.special),
        run.causal,
    )
    on_repeated = _by_name(_repeated_scores(run.model_key))
    n_layers, n_heads = run.weights.shape[:2]
    layers, heads = np.indices((n_layers, n_heads)).reshape(2, -1)
    columns: dict[str, np.ndarray] = {"layer": layers, "head": heads}
    with torch.inference_mode():
        for statistic in STATISTICS:
            values = (
                on_repeated[statistic.name]
                if statistic.measure is None
                else statistic.measure(text).numpy()
            )
            columns[statistic.name] = values.reshape(-1)
    return pd.DataFrame(columns)


def repeated_statistics(name: str) -> dict[str, np.ndarray]:
    """The statistics that don't depend on the text, by name: (layers, heads) each.

    They're measured once per model on random words repeated twice, between the special tokens that
    the tokenizer adds around a text. NaN if the context is too short.
    """
    return _by_name(_repeated_scores(models.key(name)))


def _by_name(scores: np.ndarray) -> dict[str, np.ndarray]:
    induction, duplicate = scores
    return {"induction": induction, "duplicate": duplicate}


@cached(key=lambda where: where[:2])
def _repeated_scores(where: tuple[str, ...]) -> np.ndarray:
    from attention_core.analysis.head_statistics import repeated_scores
    from attention_core.analysis.repeated_words import repeated_words

    model = models.by_key((where[0], where[1]))
    config = model.core.config
    before, after = _special_ids(model)
    ids = repeated_words(
        min(model.tokenizer.vocab_size, config.vocab_size),
        model.tokenizer.decode,
        config.context_length - len(before) - len(after),
    )
    if ids is None:
        return np.full((2, config.n_layers, config.n_heads), np.nan, np.float32)
    with compute.slot():
        scores = repeated_scores(model.core, ids, before=before, after=after)
    return np.stack([part.float().cpu().numpy() for part in (scores.induction, scores.duplicate)])


def _special_ids(model: Pretrained) -> tuple[list[int], list[int]]:
    """The ids that the tokenizer adds before and after a text."""
    tokens = model.tokenizer.encode("a")
    ordinary = [index for index, special in enumerate(tokens.special) if not special]
    ids = list(tokens.ids)
    return ids[: ordinary[0]], ids[ordinary[-1] + 1 :]
