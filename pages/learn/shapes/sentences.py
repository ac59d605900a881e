"""One-sentence descriptions of one token's scores, weights and context vector."""

from __future__ import annotations

from pages.learn.shapes.walk import ShapeWalk
from ui.text.formatting import format_number, percent
from ui.text.isolated import isolated


def describe_step(walk: ShapeWalk, number: int) -> str:
    """Describe a step's result for the last token and the first head shown.

    Empty for steps other than 7 to 9, and for a text of a single token.
    """
    query = len(walk.labels[0]) - 1 if walk.indices is None else walk.indices["token"][-1]
    caption = {7: _scores, 8: _weights, 9: _context}.get(number)
    if caption is None or query == 0:
        return ""
    head = 0 if walk.indices is None else walk.indices["head"][0]
    return caption(walk, head, query)


def _scores(walk: ShapeWalk, head: int, query: int) -> str:
    asking = isolated(walk.labels[0][query])
    masked = walk.steps[7].tensors[0]  # without a mask these are just the scores
    best = int(masked.tensor[0, head, query].argmax())
    score = float(walk.steps[6]["scores"].tensor[0, head, query, best])
    return (
        f"In head {head}, the highest score in row “{asking}” is {format_number(score, '.2f')}, "
        "for "
        f"“{isolated(walk.labels[0][best])}”, so “{asking}” attends to it most."
    )


def _weights(walk: ShapeWalk, head: int, query: int) -> str:
    weights = walk.steps[7]["weights"].tensor[0, head, query]
    (first, to_first), (second, to_second) = (
        (percent(float(weights[key])), isolated(walk.labels[0][key]))
        for key in weights.argsort(descending=True, stable=True)[:2].tolist()
    )
    asking = isolated(walk.labels[0][query])
    return (
        f"In head {head}, “{asking}” gives {first} of its attention to “{to_first}” and {second} "
        f"to “{to_second}”."
    )


def _context(walk: ShapeWalk, head: int, query: int) -> str:
    column = 0 if walk.indices is None else walk.indices["column"][0]
    values = walk.steps[5]["values"].tensor
    n_heads = walk.steps[1].tensors[0].shape[0]
    handed = values[0, head * values.shape[1] // n_heads, :, column]
    weights = walk.steps[7].tensors[-1].tensor[0, head, query]  # after dropout, if there is any
    largest = sorted(weights.argsort(descending=True, stable=True)[:2].tolist())
    products = " + ".join(
        f"{float(weights[key]):.2f} × {_factor(float(handed[key]))}" for key in largest
    )
    rest = " + …" if query > 1 else ""
    total = float(walk.steps[8]["context"].tensor[0, head, query, column])
    return (
        f"“{isolated(walk.labels[0][query])}” in head {head}, column {column}: "
        f"{products}{rest} = {format_number(total, '.2f')}."
    )


def _factor(number: float) -> str:
    """Format a number, with parentheses around a negative one."""
    text = format_number(number, ".2f")
    return f"({text})" if number < 0 else text
