"""Pictures of one head's buffers after each step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from pages.kv_cache.inside_the_cache.run import CacheRun
from ui.canvas.heatmap import DivergingScale, Map, heatmap
from ui.text.isolated import isolated
from ui.widgets.linked import linked

ROW_PX = 15  # height that fits a label in every row
WRITTEN, READ, OLD = "W", "r", "old"


def range_slider(label: str, key: str, low: int, high: int, default: int, help: str = "") -> int:
    """A slider from low to high that keeps its value when the limits change."""
    # set it only if needed: otherwise a slider whose value isn't sent yet would jump back
    if not low <= st.session_state.get(key, low) <= high:
        st.session_state[key] = min(max(st.session_state[key], low), high)
    choice: int = linked(
        st.select_slider,
        label,
        range(low, high + 1),
        min(max(default, low), high),
        key=key,
        help=help or None,
        disabled=low == high,
    )
    return choice


def names(run: CacheRun) -> tuple[str, str]:
    """Names of what the cache stores: key and value, or latent and rotary key."""
    return ("key", "value") if run.config.latent is None else ("latent", "rotary key")


def scale(rows: np.ndarray) -> DivergingScale:
    """The color scale of a buffer (N, D), the same at all steps."""
    return DivergingScale(max(float(np.abs(rows).max(initial=0)), 1e-6))


def row_label(mark: str, row: int, piece: str) -> str:
    """A row's label: its index, its mark and its token."""
    return " ".join(part for part in (str(row), mark, piece) if part)


def buffer(
    values: np.ndarray,
    labels: Sequence[str],
    scale: DivergingScale,
    *,
    title: str,
    key: str,
    name: str,
    framed: Sequence[int] = (),
    room_for: Sequence[str] = (),
) -> None:
    """Draw a buffer (N, D) with NaN in unwritten rows; other arguments as in `Map`."""
    rows = Map(
        values,
        [str(column) for column in range(values.shape[1])],
        title=title,
        causal=False,
        scale=scale,
        row_labels=labels,
        value_name=name,
        hidden_text="not written yet",
        axes=("row", "column"),
        row_height=ROW_PX,
        framed_rows=framed,
        room_for=room_for,
    )
    heatmap(rows, key=key)


def rows_at_step(rows: np.ndarray, length: int) -> np.ndarray:
    """A copy of a buffer (N, D) with all rows from `length` on set to NaN."""
    stored = rows.astype(np.float32, copy=True)
    stored[length:] = np.nan
    return stored


def step_labels(run: CacheRun, step: int) -> list[str]:
    """Labels of all rows after a step (from 0), marked as written or read."""
    access = run.steps[step].access
    written, read = set(access.rows_written), set(access.rows_read)
    labels = []
    for row in range(run.n_rows):
        mark = (WRITTEN if row in written else "") + (READ if row in read else "")
        labels.append(row_label(mark, row, run.pieces[row] if row in read else ""))
    return labels


def keys_and_values(run: CacheRun, step: int, layer: int, head: int) -> None:
    """Draw the keys and values of one head in memory order after a step (from 0)."""
    labels, length = step_labels(run, step), run.length(step)
    # a text that ended early has fewer tokens than the buffer has rows
    held = enumerate(run.pieces[: run.n_rows])
    widest = [row_label(WRITTEN + READ, row, piece) for row, piece in held]
    for column, name, tensor in zip(
        st.columns(2, gap="large"), names(run), (run.keys, run.values), strict=True
    ):
        rows = tensor[layer, head]
        with column:
            buffer(
                rows_at_step(rows, length),
                labels,
                scale(rows),
                name=name,
                title=f"{name.capitalize()}s, layer {layer}, KV head {head}",
                key=f"inside_the_cache_{'keys' if tensor is run.keys else 'values'}",
                framed=run.steps[step].access.rows_written,
                room_for=widest,
            )


def sentence(run: CacheRun, step: int) -> str:
    """Sentences about a step (from 0): what it ran, chose, wrote and read."""
    step_record, length = run.steps[step], run.length(step)
    access = step_record.access
    ran = (
        f"ran the {run.n_prompt} tokens of the prompt"
        if step == 0
        else f"ran “{isolated(run.pieces[length - 1])}”"
    )
    again = step_record.uncached_rows - len(access.new)
    return (
        f"Step {step + 1} ({step_record.kind}) {ran} and chose “{isolated(run.pieces[length])}”. "
        f"It wrote {span(access.rows_written)} ({access.bytes_written:,} bytes in all layers) and "
        f"read {span(access.rows_read)} ({access.bytes_read:,} bytes). "
        f"Without a cache, {again} of {step_record.uncached_rows} tokens would be recomputed."
    )


def span(rows: Sequence[int]) -> str:
    """Consecutive row indices in words, such as "rows 3 to 7"."""
    if not rows:
        return "no row"
    if len(rows) == 1:
        return f"row {rows[0]}"
    return f"rows {rows[0]} to {rows[-1]}"
