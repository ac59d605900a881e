"""The residual stream: a model's run on a text, and how long its vectors are after each layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pages.learn.block.charts import ATTENTION, FEED_FORWARD, STREAM
from pages.learn.block.originals import EMPTY
from serving import models, turns
from serving.cache import kept
from serving.limits import MAX_LESSON_TOKENS, STREAM_CACHE_BYTES
from serving.prompts import prepare

if TYPE_CHECKING:
    from attention_core.experiments.learn.block.residual_stream import Stream


@dataclass(frozen=True)
class Run:
    """What a model did to a text.

    stream: the tensors. labels: a label a token. norms: (L + 1, T) of the stream, and (L, T) of
    what attention and feed-forward add.
    """

    title: str
    labels: tuple[str, ...]
    stream: Stream
    norms: np.ndarray
    attention: np.ndarray
    feed_forward: np.ndarray


@kept(STREAM_CACHE_BYTES, key=lambda name, text: (*models.key(name), text))
def run(name: str, text: str) -> Run:
    """A model on a text, kept. Raises OverLimit, or ValueError for a text without a token."""
    import torch

    from attention_core.experiments.learn.block.residual_stream import residual_stream, token_norms

    model = models.get(name)
    tokens = prepare(model, text, MAX_LESSON_TOKENS, "this page", empty=EMPTY).tokens
    with turns.turn(), torch.inference_mode():
        stream = residual_stream(model.core, torch.tensor(tokens.ids, device=model.device))
        norms = [
            token_norms(x).float().cpu().numpy()
            for x in (stream.states, stream.attention, stream.feed_forward)
        ]
    return Run(model.spec.title, tokens.labels, stream, *norms)


def stream_table(done: Run) -> pd.DataFrame:
    """Norms by layer: mean and range over the tokens of the stream, and means of what is added."""
    added = {ATTENTION: done.attention, FEED_FORWARD: done.feed_forward}
    table = pd.DataFrame(
        {
            "layers passed": range(len(done.norms)),
            "stream, mean": done.norms.mean(axis=1),
            "stream, smallest": done.norms.min(axis=1),
            "stream, largest": done.norms.max(axis=1),
        }
    )
    for name, norms in added.items():
        table[f"{name}, mean"] = np.concatenate([[np.nan], norms.mean(axis=1)])
    return table


def stream_rows(run: Run, position: int) -> pd.DataFrame:
    """The rows of the stream's chart: mean and range over the tokens, and the token at `position`.

    What a layer adds stands where it ends up: behind that layer.
    """
    tables = []
    for series, norms in (
        (STREAM, run.norms),
        (ATTENTION, run.attention),
        (FEED_FORWARD, run.feed_forward),
    ):
        first = len(run.norms) - len(norms)
        table = pd.DataFrame(
            {
                "series": series,
                "layers": range(first, first + len(norms)),
                "mean": norms.mean(axis=1).astype(float).round(4),
                "low": norms.min(axis=1).astype(float),
                "high": norms.max(axis=1).astype(float),
                "token": norms[:, position].astype(float).round(4),
            }
        )
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
