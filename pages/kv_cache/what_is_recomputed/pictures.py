"""Pictures of one step: its matrices, its logits, and tracing back the last row.

In each matrix, a box marks the entries that were already computed one step ago.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pages.kv_cache.what_is_recomputed.run import Growth, names
from ui.canvas.tensors import Panel, Provenance, Quantity
from ui.canvas.tensors.provenance import provenance
from ui.text.formatting import difference, format_number, percent
from ui.text.isolated import isolated

if TYPE_CHECKING:
    from torch import Tensor

    from pages.kv_cache.what_is_recomputed.experiment import GrownStep

N_COLUMNS = 6  # columns of a head that are drawn
MAX_NAMED_KEYS = 12  # with more keys, columns show positions instead of words
BOX_NOTE = "already computed one step ago"
FROM_CACHE = "from the cache"


@dataclass(frozen=True)
class StepView:
    """The current view: a step of a growing text, and some columns of one head.

    step_index: from 0. column: the first column drawn.
    """

    growth: Growth
    step_index: int
    layer: int
    head: int
    column: int

    @property
    def step(self) -> GrownStep:
        """The current step."""
        return self.growth.steps[self.step_index]

    @property
    def columns(self) -> range:
        """The columns of the head that are drawn."""
        size = self.growth.config.d_head
        return range(self.column, min(self.column + N_COLUMNS, size))

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of all rows that any step processes."""
        labels = self.growth.labels[: self.growth.n_rows]
        if len(labels) <= MAX_NAMED_KEYS:
            return labels
        return tuple(f"{position} {label}" for position, label in enumerate(labels))

    @property
    def keys(self) -> tuple[str, ...]:
        """Headings of key columns: labels, or positions if the text is long."""
        if self.growth.n_rows <= MAX_NAMED_KEYS:
            return self.labels
        return tuple(map(str, range(self.growth.n_rows)))

    @property
    def scale(self) -> float:
        """The factor 1/√D by which the scores are multiplied."""
        return float(self.growth.config.d_head**-0.5)


def sentence(view: StepView) -> str:
    """A sentence about the tokens that the step runs and the token that it chooses."""
    step, growth = view.step, view.growth
    again = f"{step.n_before} of them again" if step.n_before else "all for the first time"
    return (
        f"Layer {view.layer}, head {view.head}. "
        f"Step {view.step_index + 1} of {len(growth.steps)}: without a cache it runs "
        f"{step.n_tokens} tokens, {again}, and chooses “{isolated(growth.pieces[step.n_tokens])}”."
    )


def text(view: StepView) -> str:
    """The whole text, with a mark after the last token that this step runs.

    The text has the same length in every step, so nothing on the page moves.
    """
    n = view.step.n_tokens
    pieces = view.growth.text
    return f"{isolated(''.join(pieces[:n]))} ‖{isolated(''.join(pieces[n:]))}"


def matrices(view: StepView) -> list[Panel]:
    """The six matrices of the head, with a box around what was computed one step ago."""
    from pages.kv_cache.what_is_recomputed.experiment import SCORES, WEIGHTS, change_of_old_part

    step, growth = view.step, view.growth
    current = step.full.head(view.layer, view.head)
    final = growth.steps[-1].full.head(view.layer, view.head)
    before = None
    if step.n_before:
        before = growth.steps[view.step_index - 1].full.head(view.layer, view.head)
    computed = _provenances(view, current, {name: name for name in current})
    panels = []
    for name, matrix in current.items():
        square = name in (SCORES, WEIGHTS)
        note = "In the first step, everything is new."
        if before is not None:
            change = float(change_of_old_part(before[name], matrix, name))
            note = (
                f"Boxed: already computed one step ago. Largest difference: {difference(change)}."
            )
            if square:
                note += " The cells to the right of the box are masked."
        drawn = _square if square else _rows
        panel = drawn(view, name, matrix, final[name], note)
        panels.append(_with_provenance(panel, name, computed.get(name), name))
    return panels


def _provenances(
    view: StepView, read: Mapping[str, Tensor], names: Mapping[str, str]
) -> dict[str, Provenance | None]:
    """How the scores, weights and context of a head were computed.

    read: the six matrices, (T or S, D or S) each, possibly with only the last of the T rows.
    names: the identity of the panel that shows each one.
    """
    from attention_core.analysis.provenance import Computation
    from attention_core.masks import causal_mask
    from pages.kv_cache.what_is_recomputed.experiment import (
        CONTEXT,
        KEYS,
        QUERIES,
        SCORES,
        VALUES,
        WEIGHTS,
    )

    n_queries, n_keys = read[SCORES].shape
    mask = causal_mask(n_queries, n_keys, window=view.growth.config.window)
    sources = {names[name]: matrix for name, matrix in read.items()}
    masked = {**sources, names[SCORES]: read[SCORES].masked_fill(~mask, -math.inf)}
    queries, keys = range(n_queries), range(n_keys)
    queries_and_keys = names[QUERIES], names[KEYS]
    scores = Computation("product", "qd,kd->qk", queries_and_keys)
    both = names[SCORES], names[SCORES]
    weights = Computation("softmax", "qk,ql->qk", both, factor=view.scale)
    context = Computation("product", "qk,kd->qd", (names[WEIGHTS], names[VALUES]))
    return {
        SCORES: provenance(scores, sources, (queries, keys)),
        WEIGHTS: provenance(weights, masked, (queries, keys)),
        CONTEXT: provenance(context, sources, (queries, view.columns)),
    }


QUANTITIES: tuple[Quantity, ...] = ("queries", "keys", "values", "scores", "weights")


def _with_provenance(panel: Panel, identity: str, computed: Provenance | None, name: str) -> Panel:
    """The panel with the origin of its numbers, padded with zeros for future rows."""
    if computed is not None:
        rows, columns, *operands = computed.operands.shape
        grown = np.zeros((*panel.values.shape, *operands), np.float32)
        grown[:rows, :columns] = computed.operands
        computed = replace(computed, operands=grown)
    quantity: Quantity = next((each for each in QUANTITIES if each == name), "")
    return replace(panel, identity=identity, provenance=computed, quantity=quantity)


def _padded(current: Tensor, final: Tensor) -> np.ndarray:
    """The values of this step in a grid of the final size, so that nothing moves."""
    values: np.ndarray = final.numpy().copy()
    values[: current.shape[0], : current.shape[1]] = current.numpy()
    return values


def _rows(
    view: StepView, name: str, current: Tensor, final: Tensor, note: str, box_note: str = BOX_NOTE
) -> Panel:
    """A panel of the visible columns of a matrix (T, D), one row per token."""
    columns, step, n_rows = view.columns, view.step, view.growth.n_rows
    window = slice(columns.start, columns.stop)
    return Panel(
        name,
        _padded(current[:, window], final[:, window]),
        ("token", "column"),
        rows=view.labels,
        columns=[str(column) for column in columns],
        positions=(range(n_rows), columns),
        whole=tuple(current.shape),
        filled=(step.n_tokens, len(columns)),
        box=(step.n_before, len(columns)),
        box_note=box_note,
        note=note,
    )


def _square(view: StepView, name: str, current: Tensor, final: Tensor, note: str) -> Panel:
    """A panel of a matrix (T, T), one row per query and one column per key."""
    step = view.step
    return Panel(
        name,
        _padded(current, final),
        ("query", "key"),
        rows=view.labels,
        columns=view.keys,
        whole=tuple(current.shape),
        filled=(step.n_tokens, step.n_tokens),
        box=(step.n_before, step.n_before),
        box_note=BOX_NOTE,
        note=note,
    )


# ---- the last row


def logits(view: StepView) -> Panel:
    """Logits of every row for the top next tokens, with a box around unused rows."""
    step, n_rows = view.step, view.growth.n_rows
    values = np.zeros((n_rows, len(step.top_ids)), np.float32)
    values[: step.n_tokens] = step.top_logits.numpy()
    return Panel(
        "logits, all rows",
        values,
        ("token", "next token"),
        rows=view.labels,
        columns=names(view.growth, step.top_ids.numpy()),
        whole=(step.n_tokens, view.growth.config.vocab_size),
        filled=(step.n_tokens, len(step.top_ids)),
        box=(step.n_tokens - 1, len(step.top_ids)),
        box_note="not used, because its next token is known",
        note="Boxed: computed but not used. The columns are the last row's top predictions.",
    )


def agreement(view: StepView) -> str:
    """Sentences about the predictions of the unused rows and of the last row."""
    step, growth = view.step, view.growth
    last = step.n_tokens - 1
    right = sum(
        int(i) == j for i, j in zip(step.likeliest_ids, growth.ids[1 : last + 1], strict=False)
    )
    chosen = (
        f"Only row {last} chooses the next token: “{isolated(growth.pieces[last + 1])}”, with "
        f"probability {percent(float(step.likeliest[-1]))}."
    )
    if not last:
        return chosen
    return (
        f"{chosen} The rows above it predict tokens that are already in the text, so their "
        f"predictions aren't used ({right} of {last} right)."
    )


def predictions(view: StepView) -> pd.DataFrame:
    """What each row predicts, and the actual next token."""
    step, growth = view.step, view.growth
    n = step.n_tokens
    return pd.DataFrame(
        {
            "position": range(n),
            "token": growth.labels[:n],
            "predicts": names(growth, step.likeliest_ids.numpy()),
            "probability": step.likeliest.numpy(),
            "actual next": growth.pieces[1 : n + 1],
            "used": ["no"] * (n - 1) + ["yes"],
        }
    )


# ---- from the last row of logits back to the queries, keys and values


def dependencies(view: StepView) -> list[Panel]:
    """What the last row of logits is computed from in the pass with the cache."""
    from pages.kv_cache.what_is_recomputed.experiment import (
        CONTEXT,
        KEYS,
        QUERIES,
        SCORES,
        VALUES,
        WEIGHTS,
    )

    step, growth = view.step, view.growth
    current = step.cached.head(view.layer, view.head)
    final = growth.steps[-1].cached.head(view.layer, view.head)
    n, size, window = step.n_tokens, growth.config.d_head, slice(view.column, view.columns.stop)
    labels = [str(column) for column in view.columns]
    called = {
        CONTEXT: "2  one context row", WEIGHTS: "3  one row of weights",
        SCORES: "4  one row of scores", QUERIES: "5  one new query", VALUES: "6  values",
        KEYS: "7  keys",
    }  # fmt: skip
    read = {
        name: matrix if name in (KEYS, VALUES) else matrix[-1:] for name, matrix in current.items()
    }
    computed = _provenances(view, read, called)

    def row_panel(name: str, note: str) -> Panel:
        return Panel(
            called[name],
            read[name][:, window].numpy(),
            ("token", "column"),
            rows=[view.labels[n - 1]],
            columns=labels,
            positions=((n - 1,), view.columns),
            whole=(1, size),
            note=note,
        )

    def over_tokens(name: str, note: str) -> Panel:
        return Panel(
            called[name],
            _padded(read[name], final[name][-1:]),
            ("token", "key"),
            rows=[view.labels[n - 1]],
            columns=view.keys,
            positions=((n - 1,), range(growth.n_rows)),
            whole=(1, n),
            filled=(1, n),
            note=note,
        )

    def stored(name: str) -> Panel:
        source = (
            "Boxed: from the cache. The row below is new." if step.n_before else "All rows are new."
        )
        return _rows(view, called[name], current[name], final[name], source, FROM_CACHE)

    last = Panel(
        "1  last row of logits",
        step.cached_logits.numpy()[None],
        ("token", "next token"),
        rows=[view.labels[n - 1]],
        columns=names(growth, step.top_ids.numpy()),
        positions=((n - 1,), range(len(step.top_ids))),
        whole=(1, growth.config.vocab_size),
        note="Computed from the last row of every layer, including 2.",
    )
    panels = {
        CONTEXT: row_panel(CONTEXT, f"= 3 · 6: (1, {n}) · ({n}, {size})"),
        WEIGHTS: over_tokens(WEIGHTS, f"= softmax of 4 × {format_number(view.scale, '.4g')}"),
        SCORES: over_tokens(SCORES, f"= 5 · 7ᵀ: (1, {size}) · ({size}, {n})"),
        QUERIES: row_panel(QUERIES, "The token's hidden state times W_Q."),
        VALUES: stored(VALUES),
        KEYS: stored(KEYS),
    }
    explained = (
        _with_provenance(panel, called[name], computed.get(name), name)
        for name, panel in panels.items()
    )
    return [last, *explained]


def checks(view: StepView) -> pd.DataFrame:
    """A comparison of the pass with the cache and the pass without one."""
    step = view.step
    full = step.full.head(view.layer, view.head)
    cached = step.cached.head(view.layer, view.head)
    rows = [
        {
            "compared": "last row of logits",
            "numbers": view.growth.config.vocab_size,
            "largest difference": step.cache_difference,
            "largest value": step.largest_logit,
        }
    ]
    for name in reversed(cached):
        with_cache, without_cache = cached[name], full[name][-cached[name].shape[0] :]
        n_rows = len(with_cache)
        rows.append(
            {
                "compared": f"{name}, {'1 row' if n_rows == 1 else f'{n_rows} rows'}",
                "numbers": with_cache.numel(),
                "largest difference": float((with_cache - without_cache).abs().max()),
                "largest value": float(without_cache.abs().max()),
            }
        )
    return pd.DataFrame(rows)
