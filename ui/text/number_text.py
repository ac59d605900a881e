"""Numbers to be read: with a minus sign, which a hyphen is not, and sizes with what they count."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_LEAST_SHARE, _MOST_SHARE = 1e-5, 0.995  # with two digits, what is beyond them reads as 0 or 1
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def written(number: float, form: str) -> str:
    """The number in a format such as ".3f" or "+.2g", as `legible` writes it."""
    return legible(number, format(number, form))


def legible(number: float, text: str) -> str:
    """A number that was formatted as `text`, written as people do: "−0.50", "1.2 × 10⁻⁷".

    A number that is not 0 never looks like 0: 9e-7 as "0.000" becomes "9.0 × 10⁻⁷".
    """
    if not re.search("[1-9]", text) and number and math.isfinite(number):
        text = format(number, "+.1e" if text.startswith("+") else ".1e")
    power = re.search(r"e([+-]\d+)$", text)
    if power is not None:
        raised = str(int(power[1])).translate(_RAISED)
        text = text[: power.start()] + (f" × 10{raised}" if int(power[1]) else "")
    return text.replace("-", "−")


def percent(share: float) -> str:
    """A weight or a probability with two significant digits: "64%", "0.36%".

    What is not 0 never reads as 0, and what is less than 1 never as 1: "less than 0.001%",
    "more than 99%".
    """
    if 0 < share < _LEAST_SHARE:
        return f"less than {100 * _LEAST_SHARE:g}%"
    if share >= _MOST_SHARE:
        return "more than 99%" if share < 1 else f"{100 * share:,.0f}%"
    return f"{written(100 * share, '.2g')}%"


def difference(number: float) -> str:
    """How far two results are apart: "exactly 0", or what shows its power of ten: "1.2 × 10⁻⁷"."""
    return written(number, ".1e") if number else "exactly 0"


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
