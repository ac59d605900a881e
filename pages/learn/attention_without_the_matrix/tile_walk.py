"""One head of a model on a text, computed tile by tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from serving import runs
from serving.limits import MAX_TILED_TOKENS
from ui.text.formatting import format_number, plural
from ui.text.isolated import isolated
from ui.widgets.head_choice import HeadChoice

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core import AttentionRecord
    from pages.learn.attention_without_the_matrix.experiment.tiles import SoftmaxRows, TileStep
    from serving.runs import Run

SIZES = (2, 4, 8, 16, 32)
BY_ROWS, BY_COLUMNS, BACKWARDS = "row by row", "column by column", "backwards"
ORDERS = (BY_ROWS, BY_COLUMNS, BACKWARDS)
# States of a tile at a step.
NOW, USED, LATER, SKIPPED = "this tile", "done, not kept", "not yet", "skipped"


@dataclass(frozen=True)
class TileWalk:
    """A head (T, S) with all its steps; tile: queries and keys per tile."""

    run: Run
    record: AttentionRecord
    tile: tuple[int, int]
    steps: list[TileStep]

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per token."""
        return self.run.tokens.labels

    @property
    def mask(self) -> Tensor | None:
        """The causal mask (T, S) of a decoder; None for an encoder."""
        from attention_core.masks import causal_mask

        return causal_mask(*self.record.scores.shape) if self.run.causal else None

    @property
    def rows(self) -> SoftmaxRows:
        """The rows after the last tile."""
        return self.steps[-1].rows

    @property
    def n_tiles(self) -> int:
        """The number of tiles in the matrix, including skipped ones."""
        rows, columns = self.record.scores.shape
        return -(-rows // self.tile[0]) * -(-columns // self.tile[1])


def walk_tiles(choice: HeadChoice, text: str, tile: tuple[int, int], order: str) -> TileWalk:
    """Run the chosen head on a text, tile by tile.

    Raises: OverLimit for a text that is too long, ValueError for one without tokens, and
    `models.LOAD_ERRORS`.
    """
    import torch

    from pages.learn.attention_without_the_matrix.experiment.tiles import steps, tiles

    run = runs.run(choice.entry.spec.name, text, MAX_TILED_TOKENS, "this lesson")
    with torch.inference_mode():
        record = run.head(choice.layer, choice.head)
        n_queries, n_keys = record.scores.shape
        places = tiles(n_queries, n_keys, tile)
        numbers = {
            BY_ROWS: list(range(len(places))),
            BY_COLUMNS: sorted(range(len(places)), key=lambda n: (places[n][1].start, n)),
            BACKWARDS: list(reversed(range(len(places)))),
        }[order]
        q, k, v = (of.float().cpu() for of in (record.q, record.k, record.v))
        started = TileWalk(run, record, tile, [])
        walked = steps(q, k, v, tile, mask=started.mask, scale=record.scale, order=numbers)
        return TileWalk(run, record, tile, list(walked))


def tiles_at(walk: TileWalk, number: int) -> pd.DataFrame:
    """Every tile at a step: `top`, `bottom`, `left`, `right` and `state`.

    A row or column extends half a token to both sides of its index.
    """
    from pages.learn.attention_without_the_matrix.experiment.tiles import tiles

    when = {(step.queries.start, step.keys.start): place for place, step in enumerate(walk.steps)}
    rows = []
    n_queries, n_keys = walk.record.scores.shape
    for queries, keys in tiles(n_queries, n_keys, walk.tile):
        place = when.get((queries.start, keys.start))
        state = SKIPPED
        if place is not None:
            state = NOW if place == number else USED if place < number else LATER
        rows.append(
            (queries.start - 0.5, queries.stop - 0.5, keys.start - 0.5, keys.stop - 0.5, state)
        )
    return pd.DataFrame(rows, columns=["top", "bottom", "left", "right", "state"])


def cells_of(walk: TileWalk, step: TileStep) -> pd.DataFrame:
    """The cells of a tile: edges, `query` and `key` labels, `score` and `term`.

    `term` is exp(score - m). Pairs forbidden by the mask are left out.
    """
    m = step.rows.select(step.queries).m
    scores = step.scores.numpy()
    terms = np.exp(scores - m.masked_fill(m.isinf(), 0.0)[:, None].numpy())
    queries, keys = np.nonzero(np.isfinite(scores))
    labels = walk.labels
    rows, columns = queries + step.queries.start, keys + step.keys.start
    return pd.DataFrame(
        {
            "top": rows - 0.5,
            "bottom": rows + 0.5,
            "left": columns - 0.5,
            "right": columns + 0.5,
            "query": [labels[row] for row in rows],
            "key": [labels[column] for column in columns],
            "score": scores[queries, keys].astype(float),
            "term": terms[queries, keys].astype(float),
        }
    )


def changes_at(step: TileStep, labels: Sequence[str]) -> pd.DataFrame:
    """How a tile changes m and l of its rows; `factor` rescales l and o."""
    after, before = step.rows.select(step.queries), step.before
    by_name = labels[step.queries]
    rows = zip(by_name, before.m, after.m, before.l, after.l, step.factor, strict=True)
    return pd.DataFrame(
        [
            {
                "query": label,
                "m": f"{_number(old_m)} → {_number(m)}",
                "factor": "first tile" if old_m.isinf() else format_number(float(factor), ".3g"),
                "l": f"{_number(old_l)} → {_number(new_l)}",
            }
            for label, old_m, m, old_l, new_l, factor in rows
        ]
    )


def _number(value: Tensor) -> str:
    return "−∞" if value.isinf() else format_number(float(value), ".3f")


def rows_at(walk: TileWalk, step: TileStep) -> pd.DataFrame:
    """Running values of every row after a step: `m`, `l` and the length of o / l."""
    rows = step.rows
    return pd.DataFrame(
        {
            "query": walk.labels,
            "m": rows.m.tolist(),
            "l": rows.l.tolist(),
            "length of o / l": rows.output.norm(dim=-1).tolist(),
        }
    )


def first_rescaling(walk: TileWalk) -> int:
    """The first step (counted from 1) that rescales a row, or 1 if none does."""
    rises = (
        number
        for number, step in enumerate(walk.steps, start=1)
        if bool(((step.factor > 0) & (step.factor < 1)).any())
    )
    return next(rises, 1)


def sentences(walk: TileWalk, number: int) -> list[str]:
    """Describe a step, with numbers from its tensors."""
    step = walk.steps[number]
    n_cells = sum(one.scores.numel() for one in walk.steps[: number + 1])
    n_skipped = walk.n_tiles - len(walk.steps)
    size = f"{walk.tile[0]} × {walk.tile[1]}"
    skipped = (
        f"{n_skipped} of {walk.n_tiles} tiles {'is' if n_skipped == 1 else 'are'} skipped "
        f"because the causal mask forbids all of {'its' if n_skipped == 1 else 'their'} pairs."
        if walk.run.causal and n_skipped
        else "No tile is skipped."
        if walk.run.causal
        else "An encoder has no causal mask, so no tile is skipped."
    )
    return [
        _rescaling(walk, step),
        f"So far {plural(n_cells, 'score')} {'has' if n_cells == 1 else 'have'} been computed, "
        f"never more than {size} at a time. {skipped} "
        "After the last tile, o / l is the output of the head. It differs from the output with "
        f"the whole matrix by at most {format_number(difference(walk), '.1e')}.",
    ]


def difference(walk: TileWalk) -> float:
    """The largest difference between the tiled output and the usual one."""
    return float((walk.rows.output - walk.record.context.float().cpu()).abs().max())


def _rescaling(walk: TileWalk, step: TileStep) -> str:
    """Describe the row that the tile rescaled most."""
    old, new = step.before.m, step.rows.select(step.queries).m
    raised = (new > old) & old.isfinite()
    place = (
        f"This tile covers {_range_text('query', 'queries', step.queries)} and "
        f"{_range_text('key', 'keys', step.keys)}."
    )
    if old.isinf().all():
        return (
            f"{place} It's the first tile of these rows, so m starts at each row's largest score."
        )
    if not raised.any():
        return f"{place} No row found a larger score, so new terms are added without rescaling."
    row = int(step.factor.masked_fill(~raised, np.inf).argmin())
    label = isolated(walk.labels[step.queries.start + row])
    before, after, factor = (float(of[row]) for of in (old, new, step.factor))
    return (
        f"{place} A larger score appeared in {int(raised.sum())} of {len(old)} rows. For "
        f"“{label}”, m rises from {format_number(before, '.3f')} to "
        f"{format_number(after, '.3f')}, so its l "
        f"and o are multiplied by exp({format_number(before, '.3f')} − {_parenthesize(after)}) = "
        f"{format_number(factor, '.3g')} before the new terms are added."
    )


def _range_text(one: str, several: str, numbers: slice) -> str:
    """Name a range of rows or columns: "queries 4 to 7", "key 4"."""
    first, last = numbers.start, numbers.stop - 1
    return f"{one} {first}" if first == last else f"{several} {first} to {last}"


def _parenthesize(number: float) -> str:
    """Format a number after a minus sign, with parentheses if it's negative."""
    return f"({format_number(number, '.3f')})" if number < 0 else format_number(number, ".3f")
