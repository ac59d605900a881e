"""The residual stream: a model's run on a text, and how long its vectors are after each layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pages.learn.block.charts import ATTENTION, FEED_FORWARD, STREAM
from pages.learn.block.originals import EMPTY
from serving import runs
from serving.limits import MAX_LESSON_TOKENS
from serving.runs import Run


@dataclass(frozen=True)
class Stream:
    """How long the vectors of a run are.

    labels: a label a token. norms: (L + 1, T) of the stream, and (L, T) of what attention and
    feed-forward add.
    """

    run: Run
    title: str
    labels: tuple[str, ...]
    norms: np.ndarray
    attention: np.ndarray
    feed_forward: np.ndarray


def run(name: str, text: str) -> Stream:
    """Run a model on a text. Raises OverLimit, or ValueError for a text without a token."""
    from attention_core.analysis.residual_stream import token_norms

    model_run = runs.run(name, text, MAX_LESSON_TOKENS, "this page", empty=EMPTY)
    tensors = model_run.tensors
    return Stream(
        run=model_run,
        title=model_run.title,
        labels=model_run.tokens.labels,
        norms=token_norms(tensors.states).numpy(),
        attention=tensors.attention_norms.numpy(),
        feed_forward=tensors.mlp_norms.numpy(),
    )


def stream_table(stream: Stream) -> pd.DataFrame:
    """Norms by layer: mean and range over the tokens of the stream, and means of what is added."""
    added = {ATTENTION: stream.attention, FEED_FORWARD: stream.feed_forward}
    table = pd.DataFrame(
        {
            "layers passed": range(len(stream.norms)),
            "stream, mean": stream.norms.mean(axis=1),
            "stream, smallest": stream.norms.min(axis=1),
            "stream, largest": stream.norms.max(axis=1),
        }
    )
    for name, norms in added.items():
        table[f"{name}, mean"] = np.concatenate([[np.nan], norms.mean(axis=1)])
    return table


def stream_rows(run: Stream, position: int) -> pd.DataFrame:
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
