"""Checks of arguments: each raises a ValueError that names the argument and what was given."""

from __future__ import annotations

import math
from numbers import Integral, Real


def require_int(name: str, value: object, *, least: int = 1, most: int | None = None) -> None:
    """A whole number (True is none) from `least` on, to `most` if there is such a bound."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if int(value) < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    if most is not None and int(value) > most:
        raise ValueError(f"{name} must be at most {most}, got {value}")


def require_positive(name: str, value: object, *, zero: bool = False) -> None:
    """A finite number (True is none) above 0; with `zero`, at least 0."""
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
    if not (math.isfinite(number) and (number > 0 or (zero and number == 0))):
        limit = "at least 0" if zero else "above 0"
        raise ValueError(f"{name} must be a finite number, {limit}, got {value!r}")
