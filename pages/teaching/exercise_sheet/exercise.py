"""Data types for exercises, and formatting of their numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

MINUS = "\u2212"  # a real minus sign


@dataclass(frozen=True)
class Table:
    """A table as printed.

    corner: heading of the column with the row names. columns: the column names. rows: the name of
    each row and its cells. Raises: ValueError if a row doesn't have one cell per column.
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
        """The same table with empty cells, for students to fill in."""
        return replace(self, rows=tuple((name, ("",) * len(cells)) for name, cells in self.rows))


@dataclass(frozen=True)
class Exercise:
    """One exercise and its solution.

    task: paragraphs. data_tables: tables with the numbers to use. answer_tables: tables that are
    empty in the exercise and filled in in the solution. n_lines: number of blank lines to write on.
    steps: the steps of the solution. solution_tables: more tables that only the solution has.
    """

    title: str
    task: tuple[str, ...]
    data_tables: tuple[Table, ...]
    answer_tables: tuple[Table, ...]
    n_lines: int
    steps: tuple[str, ...]
    solution_tables: tuple[Table, ...] = ()


def seeded_random(kind: str, variant: int) -> random.Random:
    """A random number generator seeded with the kind of exercise and the variant."""
    return random.Random(f"{kind} {variant}")


def tenths(numbers: random.Random, n_rows: int, n_columns: int) -> list[list[float]]:
    """Rows of random nonzero numbers from -1.5 to 1.5, with one decimal."""

    def number() -> float:
        return numbers.choice((-1, 1)) * numbers.randint(1, 15) / 10

    return [[number() for _ in range(n_columns)] for _ in range(n_rows)]


def format_number(value: float, places: int) -> str:
    """A number with `places` decimals and a real minus sign; no minus if it rounds to 0."""
    text = f"{value:.{places}f}"
    return text.replace("-", "") if float(text) == 0 else text.replace("-", MINUS)


def round_half(value: float, places: int) -> float:
    """The number that `format_number` prints."""
    return float(format_number(value, places).replace(MINUS, "-"))


def row(values: Sequence[float], places: int) -> tuple[str, ...]:
    """Format a row of numbers as table cells."""
    return tuple(format_number(value, places) for value in values)


def parenthesize(value: float, places: int) -> str:
    """A number as a factor or term, in parentheses if it's negative."""
    text = format_number(value, places)
    return f"({text})" if text.startswith(MINUS) else text


def format_sum(terms: Sequence[float], places: int) -> str:
    """Write out a sum, for example "0.60 - 0.12 + 0.05"."""
    first, *others = terms
    rest = (
        f" {MINUS if format_number(term, places).startswith(MINUS) else '+'} "
        f"{format_number(term, places).removeprefix(MINUS)}"
        for term in others
    )
    return format_number(first, places) + "".join(rest)
