"""Measurements that explain why the first token gets so much attention."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from pages.compare.generated_tokens.run import Generation
from serving import compute, token_text
from serving.cache import cached
from serving.limits import MAX_SINK_TOKENS
from ui.text.formatting import percent, plural

if TYPE_CHECKING:
    from pages.compare.generated_tokens.experiment.attention_sink import Sink, SinkResult

# Replacements for the first token: two words, a period and a line break. None is special.
_BEGINNINGS = (" the", ".", "\n", " zebra")

WEIGHT, SHARE, EVEN = "weight", "share of the output", "uniform weight"
STATE, KEY, VALUE = "state", "key", "value (v W_O)"


@dataclass(frozen=True)
class SinkMeasurements:
    """Attention sink measurements on the first tokens of a text.

    experiments: one row per variant of the text. seconds: duration of all passes.
    """

    sink: Sink
    n_tokens: int
    experiments: pd.DataFrame
    seconds: float

    @property
    def heads(self) -> np.ndarray:
        """(L, H): the mean weight of later queries on token 0."""
        array: np.ndarray = self.sink.weight.numpy()
        return array

    @property
    def peak(self) -> int:
        """The number of layers after which token 0's state is longest relative to the others."""
        return int(self.sink.state_ratio.argmax())


def measure_all(
    generation: Generation, on_progress: Callable[[int, int], None] | None = None
) -> SinkMeasurements:
    """Measure the first tokens of a generation, cached for all visitors.

    `on_progress` is called with the number of finished passes and the total, and can cancel the
    rest by raising an error.
    Raises: ValueError for a text of fewer than 3 tokens.
    """
    context = generation.pretrained.core.config.context_length
    ids = generation.trace.ids[: min(MAX_SINK_TOKENS, context)]
    return _measure(generation, ids, on_progress or (lambda n_done, n_passes: None))


@cached(key=lambda generation, ids, on_progress: (*generation.model_key, ids))
def _measure(
    generation: Generation, ids: tuple[int, ...], on_progress: Callable[[int, int], None]
) -> SinkMeasurements:
    from pages.compare.generated_tokens.experiment.attention_sink import (
        measure_sink,
        run_variants,
        variants,
    )

    model = generation.pretrained
    first = [model.tokenizer.encode(word).ids[:1] for word in _BEGINNINGS]
    labels = {
        word_ids[0]: token_text.piece(model.tokenizer, word_ids[0])
        for word_ids in first
        if word_ids
    }
    labels.pop(ids[0], None)
    texts = variants(ids, [(f"“{label}”", number) for number, label in labels.items()])
    fitting = [v for v in texts if len(v.token_ids) <= model.core.config.context_length]
    begin = time.perf_counter()
    with compute.slot():
        sink = measure_sink(model.core, ids)
    on_progress(1, len(fitting) + 1)
    outcomes = []
    for outcome in compute.steps(run_variants(model.core, fitting)):
        outcomes.append(outcome)
        on_progress(len(outcomes) + 1, len(fitting) + 1)
    seconds = time.perf_counter() - begin

    def label(token_id: int) -> str:
        return token_text.piece(model.tokenizer, token_id)

    return SinkMeasurements(
        sink=sink,
        n_tokens=len(ids),
        experiments=pd.DataFrame([_row(outcome, label) for outcome in outcomes]),
        seconds=seconds,
    )


def _row(outcome: SinkResult, label: Callable[[int], str]) -> dict[str, Any]:
    ids, received = outcome.variant.token_ids, outcome.received
    return {
        "text": outcome.variant.name,
        "sink position": outcome.sink,
        "sink token": label(ids[outcome.sink]),
        "attention it gets": float(received[outcome.sink]),
        "second position": outcome.second,
        "second token": label(ids[outcome.second]),
        "attention second gets": float(received[outcome.second]),
        "next token": label(outcome.next_id),
        "its probability": outcome.next_probability,
    }


def measurements_with_progress(generation: Generation) -> SinkMeasurements:
    """The measurements from the cache, or computed now with a progress bar."""
    status = st.empty()
    status.progress(0.0, text="Running variants of the text …")

    def report(n_done: int, n_passes: int) -> None:
        status.progress(n_done / n_passes, text=f"{n_done} of {n_passes} passes …")

    measurements = measure_all(generation, report)
    passes = len(measurements.experiments) + 1
    status.progress(
        1.0,
        text=f"{passes} passes over the first {measurements.n_tokens} tokens of this text took "
        f"{measurements.seconds:.2f} s.",
    )
    return measurements


def summary(measurements: SinkMeasurements) -> str:
    """The findings as Markdown that contains numbers but no user input."""
    sink, heads, peak = measurements.sink, measurements.heads, measurements.peak
    n_same = int((measurements.experiments["sink position"] == 0).sum())
    n_seen = len(measurements.experiments) - 1
    value, share = float(sink.value_ratio.quantile(0.5)), float(sink.share.mean())
    return (
        f"- **Weight.** Later tokens give token 0 **{percent(heads.mean())}** of their attention, "
        f"averaged over {heads.size} heads. If attention were spread evenly, it would get "
        f"{percent(sink.uniform)}. In {plural(int((heads > 0.5).sum()), 'head')}, it gets more "
        f"than half.\n"
        f"- **Effect.** Of everything that the heads add, measured by length, {percent(share)} "
        f"comes from token 0. In the median head, its value is **{value:.2f} times** as long as "
        "the median token's.\n"
        f"- **State.** After {plural(peak, 'layer')}, its state is "
        f"**{float(sink.state_ratio[peak]):.1f} times** as long as the median state. Coordinate "
        f"{int(sink.coordinate[peak])} alone accounts for {float(sink.concentration[peak]):.0%} of "
        f"the squared length.\n"
        f"- **Position or word?** Position 0 gets the most attention in {n_same} of the {n_seen} "
        "texts below where it's visible."
    )


def by_layer(measurements: SinkMeasurements) -> pd.DataFrame:
    """One row per layer: means over its heads, and medians of the ratios."""
    sink = measurements.sink
    n_layers = len(measurements.heads)
    return pd.DataFrame(
        {
            "layer": range(n_layers),
            WEIGHT: measurements.heads.mean(axis=1),
            SHARE: sink.share.mean(-1).numpy(),
            EVEN: [sink.uniform] * n_layers,
            VALUE: sink.value_ratio.quantile(0.5, dim=-1).numpy(),
            KEY: sink.key_ratio.quantile(0.5, dim=-1).numpy(),
            STATE: sink.state_ratio[:-1].numpy(),
            "largest coordinate": sink.coordinate[:-1].numpy(),
            "its share of the squared length": sink.concentration[:-1].numpy(),
        }
    )
