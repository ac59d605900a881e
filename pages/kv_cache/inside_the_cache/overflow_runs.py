"""A full cache: its error message, and three methods to continue.

Every method runs the text of the original run, so they all predict the same token at each step
and their logits can be compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pages.kv_cache.inside_the_cache import pictures
from pages.kv_cache.inside_the_cache.run import CacheRun, read_only
from serving import compute, token_text
from serving.cache import cached
from ui.text.formatting import format_number
from ui.text.isolated import isolated
from ui.widgets.progress import Report, Reporter

if TYPE_CHECKING:
    from pages.kv_cache.inside_the_cache.experiment.full_cache import LogitDrift, TextPass

WHOLE = "full context"
RESTART, RING, FIRST = "start over", "sliding window", "window and first rows"
N_FIRST = 4  # as in the paper on attention sinks
DIVERGENCE, LARGEST = "divergence, nats", "largest logit difference"


@dataclass(frozen=True)
class StrategyStep:
    """One step of a method: what its pass ran and stored, and its logit error."""

    n_run: int
    n_visible: int
    nbytes: int
    flops: int
    is_recomputed: bool
    drift: LogitDrift
    piece: str


@dataclass(frozen=True)
class FullCacheRuns:
    """A run's text, run again with a cache of only `capacity` rows.

    message: the core's error message. n_first: number of rows that FIRST keeps from the beginning.
    strategies: steps of each method. rows_written: the rows of the ring that each step wrote.
    ring_keys: (L, H_kv, S, D), the keys of every position as the ring stored them, before they were
    overwritten.
    """

    capacity: int
    message: str
    n_first: int
    strategies: dict[str, tuple[StrategyStep, ...]]
    rows_written: tuple[tuple[int, ...], ...]
    ring_keys: np.ndarray
    seconds: float


def n_passes(run: CacheRun) -> int:
    """Number of passes: the steps of all three methods, and the pass that fails."""
    return 3 * run.n_steps + 1


def _bytes(runs: FullCacheRuns) -> int:
    # the `nbytes` of each step is the size of the model's cache, which isn't stored here
    return runs.ring_keys.nbytes


@cached(key=lambda run, capacity, report=None: (run.key, capacity), size=_bytes)
def run_full_cache(run: CacheRun, capacity: int, report: Report | None = None) -> FullCacheRuns:
    """Run the text through a cache of `capacity` rows; the result is cached.

    report: as in `run.run`.
    Raises: ValueError if the prompt doesn't fit into `capacity` rows, or the whole text does.
    """
    import torch

    from attention_core import Hooks
    from attention_core.model.variants import with_window
    from pages.kv_cache.inside_the_cache.experiment import full_cache
    from pages.kv_cache.inside_the_cache.experiment.recording_cache import RecordingCache

    model = run.pretrained
    reporter = Reporter(report)
    core, text, n_prompt = model.core, run.run_ids, run.n_prompt
    hooks = Hooks(before_layer=reporter.layer)
    begin = time.perf_counter()
    with compute.slot():
        message = full_cache.capacity_error(core, text, capacity, hooks=hooks)
    reporter.unit()
    references = [step.logits for step in run.steps]

    def way_steps(passes: Iterator[TextPass]) -> Iterator[StrategyStep]:
        for text_pass, reference in zip(compute.steps(passes, seconds=0), references, strict=True):
            drift = full_cache.drift(text_pass.logits, reference)
            (piece,) = token_text.pieces(model.tokenizer, [drift.token_id])
            reporter.unit()
            yield StrategyStep(
                text_pass.n_run,
                text_pass.n_visible,
                text_pass.nbytes,
                text_pass.flops,
                text_pass.is_recomputed,
                drift,
                piece,
            )

    again = tuple(
        way_steps(full_cache.run_with_restarts(core, text, n_prompt, capacity, hooks=hooks))
    )
    ring_model = with_window(core, capacity)
    ring = RecordingCache.for_model(ring_model, len(text))
    rows = torch.full((*run.keys.shape[:2], len(text), run.keys.shape[3]), float("nan"))
    sliding, written = [], []
    for step in way_steps(full_cache.run_ring(ring_model, text, n_prompt, ring, hooks=hooks)):
        access = ring.accesses[-1]
        rows[:, :, list(access.written)] = ring.contents()[0][:, :, list(access.rows_written)]
        written.append(access.rows_written)
        sliding.append(step)
    n_first = min(N_FIRST, capacity // 2)
    first = way_steps(
        full_cache.run_with_sink(core, text, n_prompt, capacity, n_first, hooks=hooks)
    )
    return FullCacheRuns(
        capacity=capacity,
        message=message,
        n_first=n_first,
        strategies={RESTART: again, RING: tuple(sliding), FIRST: tuple(first)},
        rows_written=tuple(written),
        ring_keys=read_only(rows.numpy()),
        seconds=time.perf_counter() - begin,
    )


def summary(run: CacheRun, runs: FullCacheRuns) -> pd.DataFrame:
    """One row per method: cost, memory and drift from the first step that doesn't fit."""
    first = runs.capacity - run.n_prompt + 1  # first step (from 0) whose token doesn't fit
    count = run.n_steps - first
    whole = run.steps[first:]
    rows = [
        {
            "way": WHOLE,
            "rows": run.n_rows,
            "allocated, bytes": f"{run.steps[0].nbytes:,}",
            "FLOPs": format_number(sum(step.flops for step in whole), ".2e"),
            DIVERGENCE + ", mean": "0",
            LARGEST: "0",
            "same token": f"{count} of {count}",
        }
    ]
    for way, steps in runs.strategies.items():
        past = steps[first:]
        rows.append(
            {
                "way": way,
                "rows": runs.capacity,
                "allocated, bytes": f"{past[0].nbytes:,}",
                "FLOPs": format_number(sum(step.flops for step in past), ".2e"),
                DIVERGENCE + ", mean": f"{np.mean([s.drift.divergence for s in past]):.3f}",
                LARGEST: f"{max(step.drift.largest for step in past):.2f}",
                "same token": f"{sum(step.drift.same_token for step in past)} of {count}",
            }
        )
    return pd.DataFrame(rows)


def table(run: CacheRun, runs: FullCacheRuns) -> pd.DataFrame:
    """One row per step and method."""
    return pd.DataFrame(
        {
            "way": way,
            "step": index + 1,
            "tokens processed": step.n_run,
            "rows seen": step.n_visible,
            "allocated, bytes": step.nbytes,
            "FLOPs": step.flops,
            "rows recomputed": step.is_recomputed,
            LARGEST: step.drift.largest,
            DIVERGENCE: step.drift.divergence,
            "most likely": step.piece,
            "with full context": run.pieces[run.length(index)],
            "same": step.drift.same_token,
        }
        for way, steps in runs.strategies.items()
        for index, step in enumerate(steps)
    )


def last_fitting(run: CacheRun, runs: FullCacheRuns) -> int:
    """The last step, from 1, whose token fits into the cache."""
    return runs.capacity - run.n_prompt + 1


def ring(run: CacheRun, runs: FullCacheRuns, step: int, layer: int, head: int) -> None:
    """Draw the ring's keys after a step (from 0), in memory order."""
    from pages.kv_cache.inside_the_cache.experiment.full_cache import ring_positions

    name = pictures.names(run)[0]
    history = runs.ring_keys[layer, head]
    rows = np.full((runs.capacity, history.shape[1]), np.nan, dtype=np.float32)
    labels = []
    for row, position in enumerate(ring_positions(run.length(step), runs.capacity)):
        if position is None:
            labels.append(str(row))
            continue
        rows[row] = history[position]
        mark = pictures.WRITTEN if row in runs.rows_written[step] else ""
        labels.append(_ring_label(run, runs, position, mark))
    widest = [_ring_label(run, runs, p, pictures.WRITTEN) for p in range(len(run.run_ids))]
    pictures.buffer(
        rows,
        labels,
        pictures.scale(history),
        name=name,
        key="inside_the_cache_ring",
        title=f"Ring of {runs.capacity} rows: {name}s, layer {layer}, KV head {head}",
        framed=runs.rows_written[step],
        room_for=widest,
    )


def _ring_label(run: CacheRun, runs: FullCacheRuns, position: int, mark: str) -> str:
    return pictures.row_label(mark, position % runs.capacity, f"p{position} {run.pieces[position]}")


def sentence(run: CacheRun, runs: FullCacheRuns, step: int) -> str:
    """A sentence about where in the ring the step (from 0) wrote its token."""
    position = run.length(step) - 1
    row, token = position % runs.capacity, isolated(run.pieces[position])
    if position < runs.capacity:
        return f"Step {step + 1}: everything still fits. Position {position} is in row {row}."
    gone = position - runs.capacity
    return (
        f"Step {step + 1}: “{token}” (position {position}) went into row {position} mod "
        f"{runs.capacity} = {row} and replaced “{isolated(run.pieces[gone])}” (position {gone})."
    )
