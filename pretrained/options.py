"""Options of a `config.json`, each read with a check: what is no such number is named."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Config = Mapping[str, Any]


def size(hf: Config, option: str) -> int:
    """A size that the configuration must have: a whole number of at least 1, else ValueError."""
    value = hf.get(option)
    if option not in hf:
        raise ValueError(f"{option} is missing; it has to be a whole number of at least 1")
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{option} has to be a whole number of at least 1, not {value!r}")
    return value


def optional_size(hf: Config, option: str) -> int | None:
    """As `size`, or None when the option is absent or null."""
    return None if hf.get(option) is None else size(hf, option)


def number(hf: Config, option: str, default: float | None = None) -> float:
    """A positive number, or the default, if any, when it is absent or null; else ValueError."""
    value = default if hf.get(option) is None else hf[option]
    converted = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            converted = float(value)
        except OverflowError:  # a whole number of more than 308 digits
            converted = math.inf
    if not 0 < converted < math.inf:
        raise ValueError(f"{option} has to be a positive number, not {value!r}")
    return converted


def flag(hf: Config, option: str, default: bool = False) -> bool:
    """True or false, the default when it is absent or null; else ValueError."""
    value = default if hf.get(option) is None else hf[option]
    if not isinstance(value, bool):
        raise ValueError(f"{option} has to be true or false, not {value!r}")
    return value
