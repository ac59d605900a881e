"""What goes wrong without the transpose of step 6, and without the `contiguous` of step 11."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from pages.learn.shapes.walk import ShapeWalk, array
from ui.canvas.tensors import Panel


@dataclass(frozen=True)
class Mistake:
    """The wrong view beside the right one; the table says what each row of the wrong one holds.

    n_wrong, n_later: rows of one sentence, of `n_rows`, that hold another token, or a later one.
    """

    right: Panel
    wrong: Panel
    table: pd.DataFrame
    n_wrong: int
    n_later: int
    n_rows: int


def without_transpose(walk: ShapeWalk) -> Mistake:
    """The queries of step 5 cut straight into heads, beside the right way."""
    from pages.learn.shapes.experiment.mistakes import view_without_transpose

    flat, right = walk.steps[3]["queries"], walk.steps[5]["queries"]
    n_heads, n_tokens = right.shape[1], right.shape[2]
    # the same mistake on the numbers and on their places
    wrongly = right.moved(flat, lambda tensor: view_without_transpose(tensor, n_heads))
    assert wrongly.cells is not None
    tokens = array(wrongly.cells)[0, :, :, 0] // walk.steps[0].width  # of the first sentence
    wrong = tokens != np.arange(n_tokens)
    picked = walk.picked_from(right)
    marked = tuple(
        (b, h, t, c)
        for b in range(len(picked[0]))
        for h, head in enumerate(picked[1])
        for t, token in enumerate(picked[2])
        for c in range(len(picked[3]))
        if wrong[head, token]
    )
    rows = [
        {
            "head": head,
            "row": row,
            "should hold": walk.labels[0][row],
            "holds": walk.labels[0][tokens[head, row]],
            "mixed up": "yes" if wrong[head, row] else "no",
        }
        for head in picked[1]
        for row in picked[2]
    ]
    return Mistake(
        right=walk.drawn(right, "queries: view, then transpose(1, 2)"),
        wrong=replace(
            walk.drawn(wrongly, "queries: view(B, H, T, D) at once"),
            rows=tuple(f"row {row}" for row in picked[2]),
            mark=marked,
        ),
        table=pd.DataFrame(rows),
        n_wrong=int(wrong.sum()),
        n_later=int((tokens > np.arange(n_tokens)).sum()),
        n_rows=wrong.size,
    )


def without_contiguous(walk: ShapeWalk) -> str:
    """What torch says when step 11 leaves out `contiguous`; empty where it works."""
    from pages.learn.shapes.experiment.mistakes import view_without_contiguous_error

    return view_without_contiguous_error(walk.steps[8]["context"].tensor)
