"""One step drawn: its matrices with what was there a step ago, its logits, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pages.kv_cache.what_is_recomputed.run import Growth, names
from ui.canvas.tensors import Panel
from ui.widgets.head_picture import isolated

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.experiments.kv_cache.what_is_recomputed import GrownStep

N_COLUMNS = 6  # of a head that are drawn
MAX_NAMED_KEYS = 12  # above so many columns there is room for words and for values in the cells
BOX_NOTE = "computed one step ago already"
FROM_CACHE = "from the cache"


@dataclass(frozen=True)
class Look:
    """What is looked at: a step (from 0), a head, and the first drawn column of the head."""

    made: Growth
    now: int
    layer: int
    head: int
    column: int

    @property
    def step(self) -> GrownStep:
        """The step itself."""
        return self.made.steps[self.now]

    @property
    def columns(self) -> range:
        """Which columns of the head are drawn."""
        size = self.made.config.d_head
        return range(self.column, min(self.column + N_COLUMNS, size))

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of all rows that any step runs."""
        labels = self.made.labels[: self.made.n_rows]
        if len(labels) <= MAX_NAMED_KEYS:
            return labels
        return tuple(f"{position} {label}" for position, label in enumerate(labels))

    @property
    def keys(self) -> tuple[str, ...]:
        """What stands above a column a key: its label, or in a long text its position alone."""
        if self.made.n_rows <= MAX_NAMED_KEYS:
            return self.labels
        return tuple(map(str, range(self.made.n_rows)))

    @property
    def scale(self) -> float:
        """What the scores are multiplied with."""
        return float(self.made.config.d_head**-0.5)


def n_columns_choices(made: Growth) -> int:
    """How many first columns can be chosen."""
    return max(made.config.d_head - N_COLUMNS + 1, 1)


def sentence(look: Look) -> str:
    """What the step runs and what it chooses."""
    step, made = look.step, look.made
    again = f"{step.n_before} of them again" if step.n_before else "all for the first time"
    return (
        f"Step {look.now + 1} of {len(made.steps)}: without a cache it runs {step.n_tokens} "
        f"tokens, {again}, and chooses “{isolated(made.pieces[step.n_tokens])}”."
    )


def text(look: Look) -> str:
    """The whole text with a mark behind what the step runs: the same length in every step."""
    n = look.step.n_tokens
    pieces = [piece.replace("␣", " ") for piece in look.made.pieces]
    return f"{isolated(''.join(pieces[:n]))} ‖{isolated(''.join(pieces[n:]))}"


def table_height(n_rows: int) -> int:
    """Pixels of a table with so many rows below its head: it need not scroll, nor ever grow."""
    return 35 * (n_rows + 1) + 3


def matrices(look: Look) -> list[Panel]:
    """The six matrices of the head, the part of the step before boxed."""
    from attention_core.experiments.kv_cache.what_is_recomputed import SCORES, WEIGHTS, repeated

    step, made = look.step, look.made
    now = step.full.head(look.layer, look.head)
    final = made.steps[-1].full.head(look.layer, look.head)
    before = None
    if step.n_before:
        before = made.steps[look.now - 1].full.head(look.layer, look.head)
    panels = []
    for name, matrix in now.items():
        square = name in (SCORES, WEIGHTS)
        note = "First step: nothing was there before."
        if before is not None:
            moved = float(repeated(before[name], matrix, name))
            note = f"Boxed: the step before had it. Largest difference: {_tiny(moved)}."
            if square:
                note += " Right of the box: masked."
        panels.append(
            _square(look, name, matrix, final[name], note)
            if square
            else _rows(look, name, matrix, final[name], note)
        )
    return panels


def _tiny(value: float) -> str:
    return "exactly 0" if value == 0 else f"{value:.1e}"


def _grown(now: Tensor, final: Tensor) -> np.ndarray:
    """The step's own values in a grid as large as the last step's: so that nothing moves."""
    values: np.ndarray = final.numpy().copy()
    values[: now.shape[0], : now.shape[1]] = now.numpy()
    return values


def _rows(
    look: Look, name: str, now: Tensor, final: Tensor, note: str, box_note: str = BOX_NOTE
) -> Panel:
    """A window of a matrix with a row a token: (T, D), as many columns as are drawn."""
    columns, step, n_rows = look.columns, look.step, look.made.n_rows
    window = slice(columns.start, columns.stop)
    return Panel(
        name,
        _grown(now[:, window], final[:, window]),
        ("token", "column"),
        rows=look.labels,
        columns=[str(column) for column in columns],
        positions=(range(n_rows), columns),
        whole=tuple(now.shape),
        there=(step.n_tokens, len(columns)),
        box=(step.n_before, len(columns)),
        box_note=box_note,
        note=note,
    )


def _square(look: Look, name: str, now: Tensor, final: Tensor, note: str) -> Panel:
    """A matrix of tokens by tokens, (T, T)."""
    step = look.step
    return Panel(
        name,
        _grown(now, final),
        ("query", "key"),
        rows=look.labels,
        columns=look.keys,
        whole=tuple(now.shape),
        there=(step.n_tokens, step.n_tokens),
        box=(step.n_before, step.n_before),
        box_note=BOX_NOTE,
        note=note,
    )


# ---- the last row


def logits(look: Look) -> Panel:
    """The logits of every row for the likeliest next tokens, all but the last row boxed."""
    step, n_rows = look.step, look.made.n_rows
    values = np.zeros((n_rows, len(step.top_ids)), np.float32)
    values[: step.n_tokens] = step.top_logits.numpy()
    return Panel(
        "logits, all rows",
        values,
        ("token", "next token"),
        rows=look.labels,
        columns=names(look.made, step.top_ids.numpy()),
        whole=(step.n_tokens, look.made.config.vocab_size),
        there=(step.n_tokens, len(step.top_ids)),
        box=(step.n_tokens - 1, len(step.top_ids)),
        box_note="not used: its next token is known",
        note="Boxed: computed, and not used. The columns are the last row's likeliest tokens.",
    )


def agreement(look: Look) -> str:
    """How often the rows that nobody uses would have been right, and what the last one chooses."""
    step, made = look.step, look.made
    last = step.n_tokens - 1
    right = sum(
        int(i) == j for i, j in zip(step.likeliest_ids, made.ids[1 : last + 1], strict=False)
    )
    chosen = f"Row {last} alone chooses: “{isolated(made.pieces[last + 1])}”, with probability "
    chosen += f"{float(step.likeliest[-1]):.3f}."
    if not last:
        return chosen
    return (
        f"The rows above it predict tokens that are in the text already: {right} of {last} right, "
        f"and no matter. {chosen}"
    )


def predictions(look: Look) -> pd.DataFrame:
    """What each row predicts next, and what does come next."""
    step, made = look.step, look.made
    n = step.n_tokens
    return pd.DataFrame(
        {
            "position": range(n),
            "token": made.labels[:n],
            "predicts": names(made, step.likeliest_ids.numpy()),
            "probability": step.likeliest.numpy(),
            "comes next": made.pieces[1 : n + 1],
            "used": ["no"] * (n - 1) + ["yes"],
        }
    )


# ---- the way back from it


def way_back(look: Look) -> list[Panel]:
    """What the last row of logits is made of, from the pass behind the cache."""
    from attention_core.experiments.kv_cache.what_is_recomputed import (
        CONTEXT,
        KEYS,
        QUERIES,
        SCORES,
        VALUES,
        WEIGHTS,
    )

    step, made = look.step, look.made
    now = step.cached.head(look.layer, look.head)
    final = made.steps[-1].cached.head(look.layer, look.head)
    n, size, window = step.n_tokens, made.config.d_head, slice(look.column, look.columns.stop)
    labels = [str(column) for column in look.columns]

    def one(number: int, name: str, values: Tensor, columns: Sequence[str], note: str) -> Panel:
        return Panel(
            f"{number}  {name}",
            values[-1:, window].numpy(),
            ("token", "column"),
            rows=[look.labels[n - 1]],
            columns=columns,
            positions=((n - 1,), look.columns),
            whole=(1, size),
            note=note,
        )

    def over_tokens(number: int, name: str, which: str, note: str) -> Panel:
        return Panel(
            f"{number}  {name}",
            _grown(now[which][-1:], final[which][-1:]),
            ("token", "key"),
            rows=[look.labels[n - 1]],
            columns=look.keys,
            positions=((n - 1,), range(made.n_rows)),
            whole=(1, n),
            there=(1, n),
            note=note,
        )

    def stored(number: int, name: str, which: str) -> Panel:
        source = "Boxed: from the cache. Below: new." if step.n_before else "All new."
        return _rows(look, f"{number}  {name}", now[which], final[which], source, FROM_CACHE)

    last = Panel(
        "1  last row of logits",
        step.cached_logits.numpy()[None],
        ("token", "next token"),
        rows=[look.labels[n - 1]],
        columns=names(made, step.top_ids.numpy()),
        positions=((n - 1,), range(len(step.top_ids))),
        whole=(1, made.config.vocab_size),
        note="From the last row of every layer, and so from 2.",
    )
    return [
        last,
        one(2, "one context row", now[CONTEXT], labels, f"= 3 · 6: (1, {n}) · ({n}, {size})"),
        over_tokens(3, "one row of weights", WEIGHTS, f"= softmax of 4 × {look.scale:.4g}"),
        over_tokens(4, "one row of scores", SCORES, f"= 5 · 7ᵀ: (1, {size}) · ({size}, {n})"),
        one(5, "one query, new", now[QUERIES], labels, "The token's state times W_Q."),
        stored(6, "values", VALUES),
        stored(7, "keys", KEYS),
    ]


def checks(look: Look) -> pd.DataFrame:
    """The pass behind the cache against the last rows of the pass without one."""
    step = look.step
    full = step.full.head(look.layer, look.head)
    cached = step.cached.head(look.layer, look.head)
    rows = [
        {
            "compared": "last row of logits",
            "numbers": look.made.config.vocab_size,
            "largest difference": step.cache_difference,
            "largest value": step.largest_logit,
        }
    ]
    for name in reversed(cached):
        one, other = cached[name], full[name][-cached[name].shape[0] :]
        rows.append(
            {
                "compared": f"{name}, {'1 row' if len(one) == 1 else f'{len(one)} rows'}",
                "numbers": one.numel(),
                "largest difference": float((one - other).abs().max()),
                "largest value": float(other.abs().max()),
            }
        )
    return pd.DataFrame(rows)
