"""Exercises about a real model and the class's sentence: tokens and an attention map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pages.teaching.exercise_sheet.exercise import Exercise, Table, seeded_random
from serving.heads import HeadId
from ui.text.formatting import plural
from ui.text.isolated import isolated

if TYPE_CHECKING:
    from serving.runs import Run

MAX_MAP = 8  # tokens; more columns don't fit the width of a page
INFORMATIVE_HEADS = 12  # each variant picks one of this many heads
TOKENS_PER_ROW = 8


def labels(run: Run) -> tuple[str, ...]:
    """The label of each token, isolated from the text direction around it."""
    return tuple(isolated(label) for label in run.tokens.labels)


def read_map(run: Run, variant: int) -> Exercise:
    """Read the attention map of one head of a causal model, rounded to two decimals.

    The solution uses only the rounded numbers. The map shows the first `MAX_MAP` tokens. Its rows
    are complete, because these tokens can't see later ones.
    """
    names = labels(run)[:MAX_MAP]
    n = len(names)
    head = informative_head(run.weights[:, :, :n, :n], variant)
    hundredths = np.rint(100 * run.weights[head.layer, head.head, :n, :n]).astype(int)
    looks = tuple(
        (names[place], (_largest(hundredths[place], names), _share(hundredths[place].sum())))
        for place in range(n)
    )
    above = hundredths[np.triu_indices(n, 1)]
    below = int((hundredths[np.tril_indices(n)] == 0).sum())
    steps = [
        f"The mask covers the {len(above)} cells above the diagonal; {int((above == 0).sum())} of "
        "them are 0.00. The first row sees only one token, and the last row sees all of them.",
        "Before rounding, every row adds up to exactly 1, because the weights come from a softmax. "
        "The sums of the printed numbers may be off by a few hundredths.",
    ]
    if below:
        steps.append(
            f"Rounding also turned {plural(below, 'weight')} on or below the diagonal into 0.00. "
            "The mask didn't do that: any weight below 0.005 is printed as 0.00."
        )
    return Exercise(
        "Reading a real map",
        (
            f"These are the attention weights of head {head} of {run.title} for your sentence, "
            "rounded to two decimals. Each row is a query, and each column is a key.",
            "For each row: which token gets the largest weight, and what is the sum of the row? "
            "Which rows added up to 1 before rounding? Where in the table is the mask?",
        ),
        (
            Table(
                "weights",
                names,
                tuple((names[i], tuple(map(_share, hundredths[i]))) for i in range(n)),
            ),
        ),
        (Table("query", ("key with the largest weight", "sum of the row"), looks),),
        3,
        tuple(steps),
    )


def informative_head(weights: np.ndarray, variant: int) -> HeadId:
    """Pick a head that attends to tokens other than the query itself and the first token.

    Each variant may pick a different head. weights: (layers, H, n, n), for the printed tokens. If
    there are no other tokens, as in a text of two, any head may be picked.
    """
    n = weights.shape[-1]
    others = np.tril(np.ones((n, n)), -1)
    others[:, 0] = 0
    scores = (weights * others).sum(axis=(-2, -1)).ravel()
    best = np.argsort(-scores, kind="stable")[:INFORMATIVE_HEADS]
    layer, head = divmod(int(seeded_random("map", variant).choice(list(best))), weights.shape[1])
    return HeadId(layer, head)


def tokens(run: Run) -> Exercise:
    """Count characters, words and tokens of the sentence, and guess how the model splits it."""
    names, ids = labels(run), run.tokens.ids
    rows = range(0, len(names), TOKENS_PER_ROW)
    tables = tuple(
        Table(
            "position",
            tuple(str(place) for place in range(start, min(start + TOKENS_PER_ROW, len(names)))),
            (
                ("token", names[start : start + TOKENS_PER_ROW]),
                ("id", tuple(map(str, ids[start : start + TOKENS_PER_ROW]))),
            ),
        )
        for start in rows
    )
    text = run.tokens.text
    counts = (
        ("characters, including spaces", (f"{len(text):,}",)),
        ("words, separated by spaces", (f"{len(text.split()):,}",)),
        ("tokens", (f"{len(names):,}",)),
    )
    return Exercise(
        "Tokens",
        (
            f"How does {run.title} split your sentence into tokens? Write the sentence down and "
            "draw a line between tokens. Your guess is fine; the solutions show the real tokens.",
            "How many characters, words and tokens does it have?",
        ),
        (),
        (Table("", ("count",), counts),),
        3,
        (
            f"The model reads {len(names)} tokens and numbers them from 0. A space belongs to the "
            "token after it. Repeated tokens are marked with a small number.",
        ),
        tables,
    )


def _share(hundredths: int) -> str:
    return f"{hundredths / 100:.2f}"


def _largest(row: np.ndarray, names: tuple[str, ...]) -> str:
    """The token with the largest printed weight, or several if rounding made them equal."""
    return ", ".join(names[place] for place in np.flatnonzero(row == row.max()))
