"""What an exercise is made of, and how its numbers are written."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

MINUS = "\u2212"  # as it is printed


@dataclass(frozen=True)
class Table:
    """A table as it is printed.

    corner: what its rows are, above their names. columns: their names. rows: the name of each row,
    and its cells. Raises: ValueError for a row with another number of cells than there are columns.
    """

    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]

    def __post_init__(self) -> None:
        for name, cells in self.rows:
            if len(cells) != len(self.columns):
                raise ValueError(
                    f"row {name!r} has {len(cells)} cells for {len(self.columns)} columns"
                )

    def empty(self) -> Table:
        """The same with nothing in its cells: to write in."""
        return replace(self, rows=tuple((name, ("",) * len(cells)) for name, cells in self.rows))


@dataclass(frozen=True)
class Exercise:
    """One exercise and its solution.

    task: sentences. given: tables with the numbers to calculate with. asked: tables that are
    printed empty with the exercise, and filled in with the solution. n_lines: to write on. steps:
    the way of the solution. shown: further tables, which only the solution has.
    """

    title: str
    task: tuple[str, ...]
    given: tuple[Table, ...]
    asked: tuple[Table, ...]
    n_lines: int
    steps: tuple[str, ...]
    shown: tuple[Table, ...] = ()


def chance(kind: str, variant: int) -> random.Random:
    """Numbers drawn by chance, for each kind of exercise and each variant the same every time."""
    return random.Random(f"{kind} {variant}")


def tenths(numbers: random.Random, n_rows: int, n_columns: int) -> list[list[float]]:
    """Rows of numbers with one decimal from -1.5 to 1.5, none of them 0."""

    def number() -> float:
        return numbers.choice((-1, 1)) * numbers.randint(1, 15) / 10

    return [[number() for _ in range(n_columns)] for _ in range(n_rows)]


def written(value: float, places: int) -> str:
    """A number with so many decimals and a real minus sign; what rounds to 0 has none."""
    text = f"{value:.{places}f}"
    return text.replace("-", "") if float(text) == 0 else text.replace("-", MINUS)


def rounded(value: float, places: int) -> float:
    """The number that `written` prints."""
    return float(written(value, places).replace(MINUS, "-"))


def row(values: Sequence[float], places: int) -> tuple[str, ...]:
    """The cells of a row of numbers."""
    return tuple(written(value, places) for value in values)


def in_brackets(value: float, places: int) -> str:
    """A factor or a term: a negative number stands in brackets."""
    text = written(value, places)
    return f"({text})" if text.startswith(MINUS) else text


def added(terms: Sequence[float], places: int) -> str:
    """A sum as it is written: 0.60 - 0.12 + 0.05."""
    first, *others = terms
    rest = (
        f" {MINUS if written(term, places).startswith(MINUS) else '+'} "
        f"{written(term, places).removeprefix(MINUS)}"
        for term in others
    )
    return written(first, places) + "".join(rest)
