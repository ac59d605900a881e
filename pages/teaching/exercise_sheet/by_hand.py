"""Pencil-and-paper exercises: scores, softmax, mask, context.

Their numbers are random and are used exactly as printed. Every solution comes from the attention
core. A draw is accepted only if rounding between the steps doesn't change the printed digits and
the printed weights add up to exactly 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from pages.teaching.exercise_sheet.exercise import (
    Exercise,
    Table,
    format_number,
    format_sum,
    parenthesize,
    round_half,
    row,
    seeded_random,
    tenths,
)

SIZE = 3  # elements of a vector
NUMBERED = tuple(str(position + 1) for position in range(SIZE))
N_TOKENS = 4  # the first tokens of the sentence
SIZES = (2, 3, 5, 6, 7, 8)  # values of d with irrational roots, so that no quotient ends in a 5
MAX_DRAWS = 10_000

Draw = TypeVar("Draw")


def scores(labels: Sequence[str], variant: int) -> Exercise:
    """Dot products of one query with the key of each token. labels: the tokens' labels."""
    import torch

    from attention_core import attend

    numbers = seeded_random("scores", variant)
    (query,) = tenths(numbers, 1, SIZE)
    keys = tenths(numbers, len(labels), SIZE)
    q, k = (torch.tensor(rows, dtype=torch.float64) for rows in ([query], keys))
    products = attend(q, k, k).scores[0].tolist()
    steps = [
        f"q · k of {label}: {_dot_product(query, key, product, (1, 1))}"
        for label, key, product in zip(labels, keys, products, strict=True)
    ]
    printed = [round_half(product, 2) for product in products]
    best = [label for label, number in zip(labels, printed, strict=True) if number == max(printed)]
    which = (
        f"{best[0]} has the largest score, so its key matches best."
        if len(best) == 1
        else f"{' and '.join(best)} share the largest score, so their keys match equally well."
    )
    return Exercise(
        "Scores: how well does a query match each key?",
        (
            f"The token {labels[-1]} attends to {len(labels)} tokens of your sentence. Its query "
            f"and their keys are random vectors with {SIZE} elements each.",
            "Calculate the dot product of the query with each key. Which key matches best?",
        ),
        (
            Table("", NUMBERED, ((f"query of {labels[-1]}", row(query, 1)),)),
            Table(
                "key of",
                NUMBERED,
                tuple((label, row(key, 1)) for label, key in zip(labels, keys, strict=True)),
            ),
        ),
        (Table("", tuple(labels), (("score q · k", row(products, 2)),)),),
        4,
        (*steps, which),
    )


def softmax(labels: Sequence[str], variant: int) -> Exercise:
    """Softmax of a row of scores divided by √d. labels: the tokens' labels."""
    import torch

    from attention_core.attend import attention_weights

    numbers = seeded_random("softmax", variant)

    def draw() -> tuple[int, list[float]]:
        return numbers.choice(SIZES), [numbers.randint(-300, 300) / 100 for _ in labels]

    size, row_of_scores = _draw(draw, lambda drawn: _is_rounding_safe(drawn[1], drawn[0]))
    root = math.sqrt(size)
    scaled = [round_half(score / root, 2) for score in row_of_scores]
    powers = _powers(scaled)
    weights = attention_weights(torch.tensor(scaled, dtype=torch.float64)).tolist()
    steps = [
        f"{label}: {format_number(score, 2)} / {root:.3f} = {format_number(value, 2)}; "
        f"e to the power of {format_number(value, 2)} = {power:.3f}; {quotient}"
        for label, score, value, power, quotient in zip(
            labels, row_of_scores, scaled, powers, _quotients(powers, weights), strict=True
        )
    ]
    return Exercise(
        "Softmax: from scores to weights",
        (
            f"These are the scores of one query. Queries and keys have d = {size} elements. Divide "
            "each score by √d, raise e to the power of the result, and divide by the sum of all "
            "powers.",
            "Round the divided scores to two decimals, the powers to three, and the weights to "
            "two.",
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
            f"√{size} = {root:.3f}",
            f"Sum of the powers: {format_sum(powers, 3)} = {sum(powers):.3f}",
            *steps,
            f"Sum of the weights: {format_sum([round_half(w, 2) for w in weights], 2)} = "
            f"{sum(round_half(w, 2) for w in weights):.2f}",
        ),
    )


def mask(labels: Sequence[str], variant: int) -> Exercise:
    """The causal mask for a table of scores, and each row's weights. labels: the tokens' labels."""
    import torch

    from attention_core.attend import attention_weights, mask_scores
    from attention_core.masks import causal_mask

    numbers = seeded_random("mask", variant)
    n = len(labels)
    table = _draw(
        lambda: tenths(numbers, n, n),
        lambda drawn: all(_is_rounding_safe(drawn[place][: place + 1], 1) for place in range(n)),
    )
    scores = torch.tensor(table, dtype=torch.float64)
    causal = causal_mask(n, n)
    masked = mask_scores(scores, causal)
    weights = attention_weights(masked, causal).tolist()
    asked = [
        tuple("−∞" if value == -math.inf else format_number(value, 1) for value in values)
        for values in masked.tolist()
    ]
    steps = ["A token sees itself and the tokens before it. All other scores become −∞."]
    for n_seen, (label, values, shares) in enumerate(zip(labels, table, weights, strict=True), 1):
        powers = _powers(values[:n_seen])
        sum_of_powers = f" = {sum(powers):.3f}" if n_seen > 1 else ""
        quotients = ", ".join(_quotients(powers, shares[:n_seen]))
        steps.append(f"Row of {label}: powers {format_sum(powers, 3)}{sum_of_powers}; {quotients}")
    return Exercise(
        "The causal mask",
        (
            "These scores have already been divided by √d. Each row is a query, and each column is "
            "a key. No token may see the tokens after it.",
            "Write −∞ wherever the mask hides a key. Then calculate the softmax of each row. Round "
            "the powers to three decimals and the weights to two.",
        ),
        (_square("scores", labels, [row(values, 1) for values in table]),),
        (
            _square("masked scores", labels, asked),
            _square("weights", labels, [row(shares, 2) for shares in weights]),
        ),
        2,
        tuple(steps),
    )


def context(labels: Sequence[str], variant: int) -> Exercise:
    """The context vector, a weighted sum of values. labels: the tokens' labels."""
    import torch

    from attention_core import attend

    numbers = seeded_random("context", variant)
    cuts = sorted(numbers.sample(range(1, 20), len(labels) - 1))
    shares = [5 * (end - start) for start, end in zip([0, *cuts], [*cuts, 20], strict=True)]
    weights = [share / 100 for share in shares]
    values = tenths(numbers, len(labels), SIZE)
    v = torch.tensor(values, dtype=torch.float64)
    # softmax(log(weights)) = weights, because the weights add up to 1
    k = torch.tensor(weights, dtype=torch.float64).log()[:, None]
    record = attend(torch.ones(1, 1, dtype=torch.float64), k, v, scale=1.0)
    vector = record.context[0].tolist()
    steps = [
        f"Element {number}: {_dot_product(weights, column, total, (2, 1))}"
        for number, column, total in zip(NUMBERED, zip(*values, strict=True), vector, strict=True)
    ]
    return Exercise(
        "The context vector",
        (
            f"The token {labels[-1]} gives these weights to the tokens it sees. The values of the "
            "tokens are random vectors.",
            "Multiply each value by its weight and add up the results. The sum is the context "
            "vector.",
        ),
        (
            Table(
                "value of",
                ("weight", *NUMBERED),
                tuple(
                    (label, (f"{weight:.2f}", *row(value, 1)))
                    for label, weight, value in zip(labels, weights, values, strict=True)
                ),
            ),
        ),
        (Table("", NUMBERED, (("context vector", row(vector, 3)),)),),
        4,
        tuple(steps),
    )


def _square(corner: str, labels: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(corner, tuple(labels), tuple(zip(labels, rows, strict=True)))


def _dot_product(
    first: Sequence[float], second: Sequence[float], total: float, places: tuple[int, int]
) -> str:
    """Write out a dot product as calculated by hand. places: decimals of the two factors."""
    pairs = list(zip(first, second, strict=True))
    factors = " + ".join(
        f"{parenthesize(a, places[0])} · {parenthesize(b, places[1])}" for a, b in pairs
    )
    terms = format_sum([a * b for a, b in pairs], sum(places))
    return f"{factors} = {terms} = {format_number(total, sum(places))}"


def _powers(scores: Sequence[float]) -> list[float]:
    """The exponential of each score, rounded as printed."""
    return [round_half(math.exp(score), 3) for score in scores]


def _quotients(powers: Sequence[float], weights: Sequence[float]) -> list[str]:
    """Write out how each weight of a row is calculated by hand."""
    total = sum(powers)
    return [
        f"{power:.3f} / {total:.3f} = {weight:.2f}"
        for power, weight in zip(powers, weights, strict=True)
    ]


def _draw(draw: Callable[[], Draw], is_suitable: Callable[[Draw], bool]) -> Draw:
    """Return the first suitable draw. Raises: ValueError if none of `MAX_DRAWS` is suitable."""
    for _ in range(MAX_DRAWS):
        drawn = draw()
        if is_suitable(drawn):
            return drawn
    raise ValueError(f"none of the {MAX_DRAWS} draws is suitable")


def _is_rounding_safe(row_of_scores: Sequence[float], size: int) -> bool:
    """Whether the printed weights add up to 1 and don't depend on how a student rounds."""
    root = math.sqrt(size)
    exact = [score / root for score in row_of_scores]
    scaled = [round_half(value, 2) for value in exact]
    by_hand = _shares(_powers(scaled))
    return (
        [round_half(score / round_half(root, 3), 2) for score in row_of_scores] == scaled
        and _shares(list(map(math.exp, scaled))) == by_hand
        and _shares(list(map(math.exp, exact))) == by_hand
        and sum(round(100 * float(share)) for share in by_hand) == 100
    )


def _shares(powers: Sequence[float]) -> list[str]:
    """Each power divided by their sum, as printed."""
    return [f"{power / sum(powers):.2f}" for power in powers]
