"""The residual stream of a model: vector lengths after each layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pages.learn.block.charts import ATTENTION, FEED_FORWARD, STREAM
from pages.learn.block.original_layers import EMPTY
from serving import runs
from serving.limits import MAX_LESSON_TOKENS
from serving.runs import Run


@dataclass(frozen=True)
class Stream:
    """Vector lengths of one run.

    labels: one per token. norms: (L + 1, T), lengths in the residual stream. attention,
    feed_forward: (L, T), lengths of what these parts add.
    """

    run: Run
    title: str
    labels: tuple[str, ...]
    norms: np.ndarray
    attention: np.ndarray
    feed_forward: np.ndarray


def run(name: str, text: str) -> Stream:
    """Run a model on a text.

    Raises: OverLimit for a text that is too long, ValueError for one without tokens.
    """
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
    """Norms by layer: the stream (mean, range) and what each part adds (mean)."""
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
    """Chart data: mean and range over the tokens, and the token at `position`.

    What a layer adds is listed under the number of layers passed after it.
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
