"""Exercises to calculate with a pencil: scores, softmax, mask, context.

Their numbers are drawn by chance, and are those that are printed. Every solution comes from the
attention core. A draw is taken only if the printed digits do not depend on whether a student
rounds between the steps, and if printed weights add up to exactly 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from pages.in_class.exercise_sheet.exercise import (
    Exercise,
    Table,
    added,
    chance,
    in_brackets,
    rounded,
    row,
    tenths,
    written,
)

SIZE = 3  # numbers of a vector
N_TOKENS = 4  # of the sentence, the first ones
SIZES = (2, 3, 5, 6, 7, 8)  # d of the softmax: their roots go on for ever, so nothing ends in a 5
MOST_DRAWS = 10_000

Drawn = TypeVar("Drawn")


def scores(labels: Sequence[str], variant: int) -> Exercise:
    """Dot products of one query with the key of each token; labels: of the tokens."""
    import torch

    from attention_core import attend

    numbers = chance("scores", variant)
    (query,) = tenths(numbers, 1, SIZE)
    keys = tenths(numbers, len(labels), SIZE)
    q, k = (torch.tensor(rows, dtype=torch.float64) for rows in ([query], keys))
    products = attend(q, k, k).scores[0].tolist()
    steps = []
    for label, key, product in zip(labels, keys, products, strict=True):
        pairs = list(zip(query, key, strict=True))
        factors = " + ".join(f"{in_brackets(a, 1)} · {in_brackets(b, 1)}" for a, b in pairs)
        terms = added([a * b for a, b in pairs], 2)
        steps.append(f"q · k of {label}: {factors} = {terms} = {written(product, 2)}")
    printed = [rounded(product, 2) for product in products]
    best = [label for label, number in zip(labels, printed, strict=True) if number == max(printed)]
    which = (
        f"The largest score belongs to {best[0]}: this key fits best."
        if len(best) == 1
        else f"The largest score belongs to {' and '.join(best)}: these keys fit equally well."
    )
    numbered = tuple(str(place + 1) for place in range(SIZE))
    return Exercise(
        "Scores: how well does a query fit each key?",
        (
            f"The token {labels[-1]} looks at {len(labels)} tokens of your sentence. Its query and "
            f"their keys were drawn by chance for this sheet, with {SIZE} numbers each.",
            "Calculate the dot product of the query with each key. Which key fits best?",
        ),
        (
            Table("", numbered, ((f"query of {labels[-1]}", row(query, 1)),)),
            Table(
                "key of",
                numbered,
                tuple((label, row(key, 1)) for label, key in zip(labels, keys, strict=True)),
            ),
        ),
        (Table("", tuple(labels), (("score q · k", row(products, 2)),)),),
        4,
        (*steps, which),
    )


def softmax(labels: Sequence[str], variant: int) -> Exercise:
    """A row of scores, divided by the root of d, and its softmax; labels: of the tokens."""
    numbers = chance("softmax", variant)

    def draw() -> tuple[int, list[float]]:
        return numbers.choice(SIZES), [numbers.randint(-300, 300) / 100 for _ in labels]

    size, row_of_scores = _draw(draw, lambda drawn: _is_the_same_by_hand(drawn[1], drawn[0]))
    root = math.sqrt(size)
    scaled = [rounded(score / root, 2) for score in row_of_scores]
    powers = [rounded(math.exp(value), 3) for value in scaled]
    (weights,) = _weights([scaled], causal=False)
    total = sum(powers)
    steps = [f"√{size} = {root:.3f}"]
    for label, score, value, power, weight in zip(
        labels, row_of_scores, scaled, powers, weights, strict=True
    ):
        steps.append(
            f"{label}: {written(score, 2)} / {root:.3f} = {written(value, 2)}; "
            f"e to the power of {written(value, 2)} = {power:.3f}; "
            f"{power:.3f} / {total:.3f} = {weight:.2f}"
        )
    return Exercise(
        "Softmax: from scores to weights",
        (
            f"A query has these scores. A query and a key have d = {size} numbers. Divide each "
            "score by √d, take e to the power of the result, and divide by the sum of all powers.",
            "Write divided scores with two decimals, powers with three, weights with two.",
        ),
        (Table("", tuple(labels), (("score q · k", row(row_of_scores, 2)),)),),
        (
            Table(
                "",
                tuple(labels),
                (
                    ("score / √d", row(scaled, 2)),
                    ("e to its power", row(powers, 3)),
                    ("weight", row(weights, 2)),
                ),
            ),
        ),
        2,
        (
            *steps[:1],
            f"The sum of the powers: {added(powers, 3)} = {total:.3f}",
            *steps[1:],
            f"All weights together: {added([rounded(w, 2) for w in weights], 2)} = "
            f"{sum(rounded(w, 2) for w in weights):.2f}",
        ),
    )


def mask(labels: Sequence[str], variant: int) -> Exercise:
    """The causal mask on a table of scores, and the weights of each row; labels: of the tokens."""
    import torch

    from attention_core.attend import mask_scores
    from attention_core.masks import causal_mask

    numbers = chance("mask", variant)
    n = len(labels)
    table = _draw(
        lambda: tenths(numbers, n, n),
        lambda drawn: all(_is_the_same_by_hand(drawn[place][: place + 1], 1) for place in range(n)),
    )
    scores = torch.tensor(table, dtype=torch.float64)
    masked = mask_scores(scores, causal_mask(n, n)).tolist()
    weights = _weights(table, causal=True)
    steps = ["A token sees itself and what stands before it. All other scores become −∞."]
    for label, values, shares in zip(labels, masked, weights, strict=True):
        seen = [value for value in values if value != -math.inf]
        powers = [rounded(math.exp(value), 3) for value in seen]
        total = sum(powers)
        quotients = ", ".join(
            f"{power:.3f} / {total:.3f} = {share:.2f}"
            for power, share in zip(powers, shares[: len(seen)], strict=True)
        )
        sum_of_powers = f" = {total:.3f}" if len(powers) > 1 else ""
        steps.append(f"Row of {label}: powers {added(powers, 3)}{sum_of_powers}; {quotients}")
    asked = [
        [("−∞" if value == -math.inf else written(value, 1)) for value in values]
        for values in masked
    ]
    return Exercise(
        "The causal mask",
        (
            "These scores are divided by √d already. A row is the token that looks, a column the "
            "token looked at. No token may see what comes after it.",
            "Write −∞ where the mask forbids a look. Then calculate the softmax of each row, with "
            "powers of three decimals and weights of two.",
        ),
        (_square("scores", labels, [row(values, 1) for values in table]),),
        (
            _square("masked scores", labels, [tuple(cells) for cells in asked]),
            _square("weights", labels, [row(shares, 2) for shares in weights]),
        ),
        2,
        tuple(steps),
    )


def context(labels: Sequence[str], variant: int) -> Exercise:
    """The context vector: values times weights, added up; labels: of the tokens."""
    import torch

    from attention_core import attend

    numbers = chance("context", variant)
    cuts = sorted(numbers.sample(range(1, 20), len(labels) - 1))
    shares = [5 * (end - start) for start, end in zip([0, *cuts], [*cuts, 20], strict=True)]
    weights = [share / 100 for share in shares]
    values = tenths(numbers, len(labels), SIZE)
    v = torch.tensor(values, dtype=torch.float64)
    # the softmax of the logarithms of weights is the weights themselves
    k = torch.tensor(weights, dtype=torch.float64).log()[:, None]
    record = attend(torch.ones(1, 1, dtype=torch.float64), k, v, scale=1.0)
    vector = record.context[0].tolist()
    steps = []
    for place in range(SIZE):
        column = [value[place] for value in values]
        pairs = list(zip(weights, column, strict=True))
        factors = " + ".join(f"{weight:.2f} · {in_brackets(value, 1)}" for weight, value in pairs)
        terms = added([weight * value for weight, value in pairs], 3)
        steps.append(f"Number {place + 1}: {factors} = {terms} = {written(vector[place], 3)}")
    numbered = tuple(str(place + 1) for place in range(SIZE))
    return Exercise(
        "The context vector",
        (
            f"The token {labels[-1]} gives these weights to the tokens that it sees. The value of "
            "each token was drawn by chance for this sheet.",
            "Multiply each value by its weight and add up. The sum is the context vector.",
        ),
        (
            Table(
                "value of",
                ("weight", *numbered),
                tuple(
                    (label, (f"{weight:.2f}", *row(value, 1)))
                    for label, weight, value in zip(labels, weights, values, strict=True)
                ),
            ),
        ),
        (Table("", numbered, (("context vector", row(vector, 3)),)),),
        4,
        tuple(steps),
    )


def _square(corner: str, labels: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(corner, tuple(labels), tuple(zip(labels, rows, strict=True)))


def _weights(table: Sequence[Sequence[float]], *, causal: bool) -> list[list[float]]:
    """The softmax of each row of divided scores by the core, behind the mask if causal."""
    import torch

    from attention_core.attend import attention_weights, mask_scores
    from attention_core.masks import causal_mask

    scores = torch.tensor(table, dtype=torch.float64)
    if causal:
        mask = causal_mask(len(table), len(table))
        return attention_weights(mask_scores(scores, mask), mask).tolist()
    return attention_weights(scores).tolist()


def _draw(draw: Callable[[], Drawn], suits: Callable[[Drawn], bool]) -> Drawn:
    """The first draw that suits. Raises ValueError if none of `MOST_DRAWS` does."""
    for _ in range(MOST_DRAWS):
        drawn = draw()
        if suits(drawn):
            return drawn
    raise ValueError(f"none of {MOST_DRAWS} draws suits")


def _is_the_same_by_hand(row_of_scores: Sequence[float], size: int) -> bool:
    """Whether the printed weights are the same however a student rounds, and add up to 1."""
    root = math.sqrt(size)
    scaled = [rounded(score / root, 2) for score in row_of_scores]
    ways = [
        scaled,  # rounded as it is printed
        [score / root for score in row_of_scores],  # nothing rounded
    ]
    powers = [rounded(math.exp(value), 3) for value in scaled]
    by_hand = [f"{power / sum(powers):.2f}" for power in powers]
    same_root = all(
        rounded(score / rounded(root, 3), 2) == value
        for score, value in zip(row_of_scores, scaled, strict=True)
    )
    printed = [[f"{weight:.2f}" for weight in _softmax(way)] for way in ways]
    hundredths = sum(round(100 * float(text)) for text in by_hand)
    return same_root and all(texts == by_hand for texts in printed) and hundredths == 100


def _softmax(values: Sequence[float]) -> list[float]:
    powers = [math.exp(value) for value in values]
    return [power / sum(powers) for power in powers]
