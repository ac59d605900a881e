"""What goes wrong without the transpose in step 6 or without `contiguous` in step 11."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from pages.learn.shapes.walk import ShapeWalk, array
from ui.canvas.tensors import Panel


@dataclass(frozen=True)
class Mistake:
    """The wrong view, the right one, and a table of the token in each row of the wrong one.

    n_wrong, n_later: how many of the `n_rows` rows of one sentence contain a different token, and
    how many a later one.
    """

    expected: Panel
    actual: Panel
    table: pd.DataFrame
    n_wrong: int
    n_later: int
    n_rows: int


def without_transpose(walk: ShapeWalk) -> Mistake:
    """Split the queries of step 5 with and without the transpose."""
    from pages.learn.shapes.experiment.mistakes import view_without_transpose

    flat, right = walk.steps[3]["queries"], walk.steps[5]["queries"]
    n_heads, n_tokens = right.shape[1], right.shape[2]
    # make the same mistake with the positions, to see which token each row contains
    wrongly = right.apply_move(flat, lambda tensor: view_without_transpose(tensor, n_heads))
    assert wrongly.cells is not None
    tokens = array(wrongly.cells)[0, :, :, 0] // walk.steps[0].width  # in the first sentence
    wrong = tokens != np.arange(n_tokens)
    window = walk.drawn_indices(right)
    marked = tuple(
        (b, h, t, c)
        for b in range(len(window[0]))
        for h, head in enumerate(window[1])
        for t, token in enumerate(window[2])
        for c in range(len(window[3]))
        if wrong[head, token]
    )
    rows = [
        {
            "head": head,
            "row": row,
            "expected token": walk.labels[0][row],
            "actual token": walk.labels[0][tokens[head, row]],
            "mixed up": "yes" if wrong[head, row] else "no",
        }
        for head in window[1]
        for row in window[2]
    ]
    return Mistake(
        expected=walk.make_panel(right, "queries: view, then transpose(1, 2)"),
        actual=replace(
            walk.make_panel(wrongly, "queries: view(B, H, T, D) only"),
            rows=tuple(f"row {row}" for row in window[2]),
            mark=marked,
        ),
        table=pd.DataFrame(rows),
        n_wrong=int(wrong.sum()),
        n_later=int((tokens > np.arange(n_tokens)).sum()),
        n_rows=wrong.size,
    )


def without_contiguous(walk: ShapeWalk) -> str:
    """PyTorch's error message if step 11 leaves out `contiguous`; empty where it works."""
    from pages.learn.shapes.experiment.mistakes import view_without_contiguous_error

    return view_without_contiguous_error(walk.steps[8]["context"].tensor)
