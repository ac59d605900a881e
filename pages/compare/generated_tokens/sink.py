"""Why so much on the first token: what is measured on the text that was generated."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from pages.compare.generated_tokens.run import Generation
from pretrained.tokenization.tokens import printable
from serving import models, turns
from serving.cache import kept
from serving.limits import MAX_SINK_TOKENS, SMALL_CACHE_BYTES

if TYPE_CHECKING:
    from attention_core.experiments.compare.generated_tokens.attention_sink import Outcome, Sink

# What the text begins with instead. Words, a mark and a line break: nothing special about them.
_OTHERS = (" the", ".", "\n", " zebra")

WEIGHT, SHARE, EVEN = "weight", "share written", "even weight"
STATE, KEY, VALUE = "state", "key", "value written"


@dataclass(frozen=True)
class Measured:
    """The measurements on the first tokens of a text. experiments: one row a beginning."""

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
        """After how many layers token 0's state is longest, relative to the others."""
        return int(self.sink.state_ratio.argmax())


def measured(made: Generation, on_progress: Callable[[int, int], None] | None = None) -> Measured:
    """Everything this section shows, for the first tokens of a run, kept for all visitors.

    `on_progress` is called with the number of finished passes and of all of them, and may abandon
    the rest by raising.
    Raises: ValueError for a text of fewer than 3 tokens.
    """
    context = models.get(made.settings.model).core.config.context_length
    ids = made.trace.ids[: min(MAX_SINK_TOKENS, context)]
    return _measure(made, ids, on_progress or (lambda done, of: None))


@kept(
    SMALL_CACHE_BYTES,
    key=lambda made, ids, on_progress: (*models.key(made.settings.model), ids),
)
def _measure(
    made: Generation, ids: tuple[int, ...], on_progress: Callable[[int, int], None]
) -> Measured:
    from attention_core.experiments.compare.generated_tokens.attention_sink import (
        measure,
        run_variants,
        variants,
    )

    model = models.get(made.settings.model)
    first = [model.tokenizer.encode(word).ids[:1] for word in _OTHERS]
    others = {found[0]: printable(model.tokenizer.decode_bytes(found)) for found in first if found}
    others.pop(ids[0], None)
    wanted = variants(ids, [(f"“{label}”", number) for number, label in others.items()])
    fitting = [v for v in wanted if len(v.token_ids) <= model.core.config.context_length]
    begin = time.perf_counter()
    with turns.turn():
        sink = measure(model.core, ids)
    on_progress(1, len(fitting) + 1)
    outcomes = []
    for outcome in turns.each(run_variants(model.core, fitting)):
        outcomes.append(outcome)
        on_progress(len(outcomes) + 1, len(fitting) + 1)
    seconds = time.perf_counter() - begin

    def label(token_id: int) -> str:
        return printable(model.tokenizer.decode_bytes([token_id]))

    return Measured(
        sink=sink,
        n_tokens=len(ids),
        experiments=pd.DataFrame([_row(outcome, label) for outcome in outcomes]),
        seconds=seconds,
    )


def _row(outcome: Outcome, label: Callable[[int], str]) -> dict[str, Any]:
    ids, got = outcome.variant.token_ids, outcome.received
    return {
        "text": outcome.variant.name,
        "most looked at": outcome.sink,
        "token there": label(ids[outcome.sink]),
        "weight it gets": float(got[outcome.sink]),
        "next most": outcome.second,
        "its token": label(ids[outcome.second]),
        "its weight": float(got[outcome.second]),
        "next token": label(outcome.next_id),
        "its probability": outcome.next_probability,
    }


def watched(made: Generation) -> Measured:
    """The measurements, made here with progress if they are not kept."""
    status = st.empty()
    status.progress(0.0, text="Running the text with other beginnings …")

    def report(done: int, of: int) -> None:
        status.progress(done / of, text=f"{done} of {of} passes …")

    found = measured(made, report)
    passes = len(found.experiments) + 1
    status.progress(
        1.0,
        text=f"{passes} passes over the first {found.n_tokens} tokens of this text, "
        f"made in {found.seconds:.2f} s.",
    )
    return found


def summary(found: Measured) -> str:
    """What was measured, in sentences. Markdown: of numbers only, no text of others."""
    sink, heads, peak = found.sink, found.heads, found.peak
    n_same = int((found.experiments["most looked at"] == 0).sum())
    n_seen = len(found.experiments) - 1
    value, share = float(sink.value_ratio.quantile(0.5)), float(sink.share.mean())
    return (
        f"- **Weight.** Later tokens give token 0 **{heads.mean():.3f}** of their attention, mean "
        f"of {heads.size} heads. Spread evenly it would be {sink.uniform:.3f}. "
        f"{int((heads > 0.5).sum())} heads give it more than half.\n"
        f"- **Effect.** Its value, as a head writes it, is **{value:.2f} times** as long as the "
        f"median token's (median of the heads). It gets {heads.mean():.3f} of the weight; of all "
        f"that the heads write, by length, {share:.3f} comes from it.\n"
        f"- **State.** After {peak} layers its state is "
        f"**{float(sink.state_ratio[peak]):.1f} times** as long as the median one. Coordinate "
        f"{int(sink.coordinate[peak])} alone holds {float(sink.concentration[peak]):.0%} of the "
        f"squared length.\n"
        f"- **Place or word?** In {n_same} of {n_seen} texts below in which queries may look at "
        "position 0, it gets the most attention of all."
    )


def by_layer(found: Measured) -> pd.DataFrame:
    """The measurements of each layer: means over its heads, medians of the ratios."""
    sink = found.sink
    n_layers = len(found.heads)
    return pd.DataFrame(
        {
            "layer": range(n_layers),
            WEIGHT: found.heads.mean(axis=1),
            SHARE: sink.share.mean(-1).numpy(),
            EVEN: [sink.uniform] * n_layers,
            VALUE: sink.value_ratio.quantile(0.5, dim=-1).numpy(),
            KEY: sink.key_ratio.quantile(0.5, dim=-1).numpy(),
            STATE: sink.state_ratio[:-1].numpy(),
            "largest coordinate": sink.coordinate[:-1].numpy(),
            "its share of the squared length": sink.concentration[:-1].numpy(),
        }
    )
