"""Reads and checks options of a `config.json`; errors name the option."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Config = Mapping[str, Any]


def size(hf: Config, option: str) -> int:
    """A required size: a positive integer, otherwise ValueError."""
    value = hf.get(option)
    if option not in hf:
        raise ValueError(f"{option} is missing; it must be a positive integer")
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{option} must be a positive integer, not {value!r}")
    return value


def optional_size(hf: Config, option: str) -> int | None:
    """Like `size`, but None if the option is missing or null."""
    return None if hf.get(option) is None else size(hf, option)


def number(hf: Config, option: str, default: float | None = None) -> float:
    """A positive number; the default if it's missing or null; otherwise ValueError."""
    value = default if hf.get(option) is None else hf[option]
    converted = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            converted = float(value)
        except OverflowError:  # an integer with more than 308 digits
            converted = math.inf
    if not 0 < converted < math.inf:
        raise ValueError(f"{option} must be a positive number, not {value!r}")
    return converted


def flag(hf: Config, option: str, default: bool = False) -> bool:
    """A boolean; the default if it's missing or null; otherwise ValueError."""
    value = default if hf.get(option) is None else hf[option]
    if not isinstance(value, bool):
        raise ValueError(f"{option} must be true or false, not {value!r}")
    return value
