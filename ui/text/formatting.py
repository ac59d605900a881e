"""Format numbers for display: real minus signs, powers of ten, and sizes with units."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_MIN_SHARE, _MAX_SHARE = 1e-5, 0.995  # anything outside would be rounded to 0 or 1
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_number(number: float, form: str) -> str:
    """Format a number with a spec such as ".3f" or "+.2g", then make it `prettify`."""
    return prettify(number, format(number, form))


def prettify(number: float, text: str) -> str:
    """Rewrite a formatted number the way people write it: "−0.50", "1.2 × 10⁻⁷".

    Nonzero numbers never look like 0: if 9e-7 was formatted as "0.000", it becomes "9.0 × 10⁻⁷".
    """
    if not re.search("[1-9]", text) and number and math.isfinite(number):
        text = format(number, "+.1e" if text.startswith("+") else ".1e")
    power = re.search(r"e([+-]\d+)$", text)
    if power is not None:
        raised = str(int(power[1])).translate(_SUPERSCRIPTS)
        text = text[: power.start()] + (f" × 10{raised}" if int(power[1]) else "")
    return text.replace("-", "−")


def percent(share: float) -> str:
    """Format a weight or probability with two significant digits: "64%", "0.36%".

    Nonzero values never look like 0%, and values below 1 never look like 100%: "less than 0.001%",
    "more than 99%".
    """
    if 0 < share < _MIN_SHARE:
        return f"less than {100 * _MIN_SHARE:g}%"
    if share >= _MAX_SHARE:
        return "more than 99%" if share < 1 else f"{100 * share:,.0f}%"
    return f"{format_number(100 * share, '.2g')}%"


def difference(number: float) -> str:
    """Format the difference between two results: "exactly 0" or, for example, "1.2 × 10⁻⁷"."""
    return format_number(number, ".1e") if number else "exactly 0"


def format_shape(axes: Sequence[str], shape: Sequence[int]) -> str:
    """Describe a shape: axes ("batch", "head", "query") -> "batch of 1 × 2 heads × 6 queries"."""
    return " × ".join(_axis_size(*axis) for axis in zip(axes, shape, strict=True))


def _axis_size(axis: str, size: int) -> str:
    return f"{axis} of {size:,}" if axis in ("batch", "width") else plural(size, axis)


def join_or(numbers: Sequence[int], noun: str = "") -> str:
    """List the possible numbers of something: ([1, 2, 6], "head") -> "1, 2 or 6 heads"."""
    *others, last = map(str, numbers)
    listed = f"{', '.join(others)} or {last}" if others else last
    return f"{listed} {noun}{'' if listed == '1' else 's'}" if noun else listed


def plural(number: int, noun: str) -> str:
    """A count and its noun: (1, "token") -> "1 token", (6, "query") -> "6 queries"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} queries" if noun == "query" else f"{number:,} {noun}s"
