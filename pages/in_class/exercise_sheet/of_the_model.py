"""Exercises about the bundled model and the class's sentence: a real map, and its tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pages.in_class.exercise_sheet.exercise import Exercise, Table, chance
from serving.heads import HeadId
from ui.text.isolated import isolated

if TYPE_CHECKING:
    from serving.runs import Run

MAX_MAP = 8  # tokens whose rows fit the width of a page
TELLING_HEADS = 12  # from which each variant takes one
TOKENS_IN_A_ROW = 8


def labels(run: Run) -> tuple[str, ...]:
    """The label of each token, kept apart from the direction of the text around it."""
    return tuple(isolated(label) for label in run.tokens.labels)


def reading_a_map(run: Run, variant: int) -> Exercise:
    """The weights of a head of a causal model, rounded to two decimals, to be read.

    Everything in the solution is read from the rounded numbers. Rows of the first tokens are whole:
    they see no later token.
    """
    names = labels(run)[:MAX_MAP]
    n = len(names)
    head = telling_head(run.weights[:, :, :n, :n], variant)
    hundredths = np.rint(100 * run.weights[head.layer, head.head, :n, :n]).astype(int)
    looks = tuple(
        (names[place], (_largest(hundredths[place], names), _share(hundredths[place].sum())))
        for place in range(n)
    )
    above = hundredths[np.triu_indices(n, 1)]
    below = int((hundredths[np.tril_indices(n)] == 0).sum())
    steps = [
        f"The mask is above the diagonal: {len(above)} cells, {int((above == 0).sum())} of them "
        "0.00. The first row sees one token, the last one all of them.",
        "Before the rounding each row adds up to exactly 1, because a softmax made it. The sums of "
        "the printed numbers may be off by a few hundredths.",
    ]
    if below:
        steps.append(
            f"{below} cells on or below the diagonal are printed as 0.00 as well. The mask did not "
            "do that: their weights are smaller than 0.005."
        )
    return Exercise(
        "Reading a real map",
        (
            f"These are the weights of head {head} of {run.title} for your sentence, with two "
            "decimals. A row is the token that looks, a column the token looked at.",
            "For each row: which token does it look at most, and what is the sum of the row? Which "
            "rows sum to 1 before the rounding? Where in the table is the mask?",
        ),
        (
            Table(
                "weights",
                names,
                tuple((names[i], tuple(map(_share, hundredths[i]))) for i in range(n)),
            ),
        ),
        (Table("token", ("looks most at", "sum of the printed row"), looks),),
        3,
        tuple(steps),
    )


def telling_head(weights: np.ndarray, variant: int) -> HeadId:
    """A head that looks at other tokens than itself and the first; another one for each variant.

    weights: (layers, H, n, n) of the tokens that are printed. Where there are no such tokens, as in
    a text of two, any head.
    """
    n = weights.shape[-1]
    others = np.tril(np.ones((n, n)), -1)
    others[:, 0] = 0
    scores = (weights * others).sum(axis=(-2, -1)).ravel()
    best = np.argsort(-scores, kind="stable")[:TELLING_HEADS]
    layer, head = divmod(int(chance("map", variant).choice(list(best))), weights.shape[1])
    return HeadId(layer, head)


def tokens(run: Run) -> Exercise:
    """How the model splits the sentence."""
    names, ids = labels(run), run.tokens.ids
    rows = range(0, len(names), TOKENS_IN_A_ROW)
    tables = tuple(
        Table(
            "number",
            tuple(str(place) for place in range(start, min(start + TOKENS_IN_A_ROW, len(names)))),
            (
                ("token", names[start : start + TOKENS_IN_A_ROW]),
                ("id", tuple(map(str, ids[start : start + TOKENS_IN_A_ROW]))),
            ),
        )
        for start in rows
    )
    text = run.tokens.text
    counts = (
        ("characters, spaces too", (f"{len(text):,}",)),
        ("words between spaces", (f"{len(text.split()):,}",)),
        ("tokens", (f"{len(names):,}",)),
    )
    return Exercise(
        "Tokens",
        (
            f"How does {run.title} split your sentence? Write it down with a stroke between "
            "tokens. Guess first; the solutions show what its tokenizer does.",
            "How many characters, words and tokens are there?",
        ),
        (),
        (Table("", ("number",), counts),),
        3,
        (
            f"The model reads {len(names)} tokens and counts them from 0. A space belongs to the "
            "token after it. A small number tells apart tokens that occur again.",
        ),
        tables,
    )


def _share(hundredths: int) -> str:
    return f"{hundredths / 100:.2f}"


def _largest(row: np.ndarray, names: tuple[str, ...]) -> str:
    """The tokens with the largest printed weight; several if the rounding made them equal."""
    return ", ".join(names[place] for place in np.flatnonzero(row == row.max()))
