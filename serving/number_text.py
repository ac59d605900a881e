"""Numbers to be read: with a minus sign, which a hyphen is not, and sizes with what they count."""

from __future__ import annotations

from collections.abc import Sequence


def written(number: float, form: str) -> str:
    """The number in a format such as ".3f" or "+.2g"; −0.5 in ".2f" is "−0.50"."""
    return format(number, form).replace("-", "−")


def difference(number: float) -> str:
    """How far two results are apart: "exactly 0", or what tells its power of ten: "1.2e-07"."""
    return f"{number:.1e}" if number else "exactly 0"


def sizes(axes: Sequence[str], shape: Sequence[int]) -> str:
    """A shape in words: axes ("batch", "head", "query") -> "batch of 1 × 2 heads × 6 queries"."""
    return " × ".join(_counted(*axis) for axis in zip(axes, shape, strict=True))


def _counted(axis: str, size: int) -> str:
    return f"{axis} of {size:,}" if axis in ("batch", "width") else counted(size, axis)


def either(numbers: Sequence[int], noun: str = "") -> str:
    """Which numbers would do, and of what: ([1, 2, 6], "head") -> "1, 2 or 6 heads"."""
    *others, last = map(str, numbers)
    said = f"{', '.join(others)} or {last}" if others else last
    return f"{said} {noun}{'' if said == '1' else 's'}" if noun else said


def counted(number: int, noun: str) -> str:
    """So many of a thing: (1, "token") -> "1 token", (6, "query") -> "6 queries"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} queries" if noun == "query" else f"{number:,} {noun}s"
