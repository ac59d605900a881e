"""One head of a model on a visitor's text, computed tile by tile, and one step of it in sight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from serving import runs
from serving.limits import MAX_TILED_TOKENS
from ui.text.isolated import isolated
from ui.text.number_text import counted, written
from ui.widgets.head_choice import HeadChoice

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core import AttentionRecord
    from pages.learn.attention_without_the_matrix.experiment.tiles import Rows, TileStep
    from serving.runs import Run

SIZES = (2, 4, 8, 16, 32)
BY_ROWS, BY_COLUMNS, BACKWARDS = "row by row", "column by column", "backwards"
ORDERS = (BY_ROWS, BY_COLUMNS, BACKWARDS)
# What a tile is at a step.
NOW, USED, LATER, SKIPPED = "this tile", "used, not kept", "not yet", "skipped"


@dataclass(frozen=True)
class TileWalk:
    """A head (T, S) with all of its steps; tile: queries and keys of a tile."""

    run: Run
    record: AttentionRecord
    tile: tuple[int, int]
    steps: list[TileStep]

    @property
    def labels(self) -> tuple[str, ...]:
        """A label for every token."""
        return self.run.tokens.labels

    @property
    def mask(self) -> Tensor | None:
        """The causal mask (T, S) of a decoder; None for an encoder, in which all tokens look."""
        from attention_core.masks import causal_mask

        return causal_mask(*self.record.scores.shape) if self.run.causal else None

    @property
    def rows(self) -> Rows:
        """The rows once all tiles are through."""
        return self.steps[-1].rows

    @property
    def n_tiles(self) -> int:
        """All tiles of the matrix, the skipped ones too."""
        rows, columns = self.record.scores.shape
        return -(-rows // self.tile[0]) * -(-columns // self.tile[1])


def walk(choice: HeadChoice, text: str, tile: tuple[int, int], order: str) -> TileWalk:
    """The chosen head on a text, tile by tile.

    Raises: OverLimit for a text that is too long, ValueError for one without a token, and
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


def tiles_at(walked: TileWalk, number: int) -> pd.DataFrame:
    """Every tile of the matrix at a step: its `top`, `bottom`, `left`, `right`, and its `state`.

    A row or a column reaches half a token to both sides of its number.
    """
    from pages.learn.attention_without_the_matrix.experiment.tiles import tiles

    when = {(step.queries.start, step.keys.start): place for place, step in enumerate(walked.steps)}
    rows = []
    n_queries, n_keys = walked.record.scores.shape
    for queries, keys in tiles(n_queries, n_keys, walked.tile):
        place = when.get((queries.start, keys.start))
        state = SKIPPED
        if place is not None:
            state = NOW if place == number else USED if place < number else LATER
        rows.append(
            (queries.start - 0.5, queries.stop - 0.5, keys.start - 0.5, keys.stop - 0.5, state)
        )
    return pd.DataFrame(rows, columns=["top", "bottom", "left", "right", "state"])


def cells_of(walked: TileWalk, step: TileStep) -> pd.DataFrame:
    """The numbers of a tile: `query`, `key`, their labels, `score` and `term` = exp(score - m).

    Pairs that the mask forbids are left out.
    """
    m = step.rows.of(step.queries).m
    scores = step.scores.numpy()
    terms = np.exp(scores - m.masked_fill(m.isinf(), 0.0)[:, None].numpy())
    queries, keys = np.nonzero(np.isfinite(scores))
    labels = walked.labels
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
    """What a tile does to the m and l of its rows; `factor`: what l and o are multiplied with."""
    after, before = step.rows.of(step.queries), step.before
    named = labels[step.queries]
    rows = zip(named, before.m, after.m, before.l, after.l, step.factor, strict=True)
    return pd.DataFrame(
        [
            {
                "query": label,
                "m": f"{_number(old_m)} → {_number(m)}",
                "factor": "first tile" if old_m.isinf() else written(float(factor), ".3g"),
                "l": f"{_number(old_l)} → {_number(new_l)}",
            }
            for label, old_m, m, old_l, new_l, factor in rows
        ]
    )


def _number(value: Tensor) -> str:
    return "−∞" if value.isinf() else written(float(value), ".3f")


def rows_at(walked: TileWalk, step: TileStep) -> pd.DataFrame:
    """What is kept of every row after a step: `query`, `m`, `l`, and the output so far's length."""
    rows = step.rows
    return pd.DataFrame(
        {
            "query": walked.labels,
            "m": rows.m.tolist(),
            "l": rows.l.tolist(),
            "length of o / l": rows.output.norm(dim=-1).tolist(),
        }
    )


def first_rescaling(walked: TileWalk) -> int:
    """The number of the first step, from 1, that meets a larger score in a row; else 1."""
    rises = (
        number
        for number, step in enumerate(walked.steps, start=1)
        if bool(((step.factor > 0) & (step.factor < 1)).any())
    )
    return next(rises, 1)


def sentences(walked: TileWalk, number: int) -> list[str]:
    """What to notice at a step, from its tensors."""
    step = walked.steps[number]
    n_cells = sum(one.scores.numel() for one in walked.steps[: number + 1])
    n_skipped = walked.n_tiles - len(walked.steps)
    size = f"{walked.tile[0]} × {walked.tile[1]}"
    skipped = (
        f"{n_skipped} of {walked.n_tiles} tiles {'is' if n_skipped == 1 else 'are'} skipped: the "
        f"causal mask forbids all of {'its' if n_skipped == 1 else 'their'} pairs."
        if walked.run.causal and n_skipped
        else "No tile is skipped."
        if walked.run.causal
        else "An encoder has no causal mask: no tile is skipped."
    )
    return [
        _rescaling(walked, step),
        f"So far {counted(n_cells, 'score')} {'was' if n_cells == 1 else 'were'} computed, never "
        f"more than {size} at once. {skipped} "
        "After the last tile, o / l is the output of the head; it differs from the one with "
        f"the whole matrix by at most {written(difference(walked), '.1e')}.",
    ]


def difference(walked: TileWalk) -> float:
    """The largest difference between the output in tiles and the one with the whole matrix."""
    return float((walked.rows.output - walked.record.context.float().cpu()).abs().max())


def _rescaling(walked: TileWalk, step: TileStep) -> str:
    """Which row the tile rescaled most, with its numbers."""
    old, new = step.before.m, step.rows.of(step.queries).m
    raised = (new > old) & old.isfinite()
    place = f"{_named('Query', 'Queries', step.queries)}, {_named('key', 'keys', step.keys)}."
    if old.isinf().all():
        return f"{place} It is the first tile of its rows: the m of each becomes its largest score."
    if not raised.any():
        return f"{place} No row meets a larger score: new terms are added, and nothing is rescaled."
    row = int(step.factor.masked_fill(~raised, np.inf).argmin())
    label = isolated(walked.labels[step.queries.start + row])
    before, after, factor = (float(of[row]) for of in (old, new, step.factor))
    return (
        f"{place} A larger maximum came in {int(raised.sum())} of {len(old)} rows. Of “{label}”, m "
        f"rises from {written(before, '.3f')} to {written(after, '.3f')}: its l and o are "
        f"multiplied by exp({written(before, '.3f')} − {_in_brackets(after)}) = "
        f"{written(factor, '.3g')} before the new terms are added."
    )


def _named(one: str, several: str, numbers: slice) -> str:
    """The numbers of some rows or columns: "Queries 4 to 7", "key 4"."""
    first, last = numbers.start, numbers.stop - 1
    return f"{one} {first}" if first == last else f"{several} {first} to {last}"


def _in_brackets(number: float) -> str:
    """A number behind a minus: in brackets if it has one of its own."""
    return f"({written(number, '.3f')})" if number < 0 else written(number, ".3f")
