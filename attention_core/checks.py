"""Checks of arguments: each raises a ValueError that names the argument and what was given."""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch
from torch import Tensor


class NotFiniteError(ValueError):
    """Numbers of a forward pass that are infinite or not a number (NaN)."""


_hints = cache(get_type_hints)  # by class: to resolve annotations takes longer than to check them


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


def require_choice(name: str, value: object, choices: Collection[object]) -> None:
    """One of the choices, of the very type that it has there."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        expected = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {expected}, got {value!r}")


def require_finite(name: str, numbers: Tensor, *, first: int | None = 0) -> None:
    """Check that the numbers (..., T, N) of T positions are finite; `name` says what they are.

    first: the first position, or None for rows that aren't positions.

    On a GPU this waits for the device. On the meta device and while a pass is compiled, numbers
    have no values, so nothing is checked.
    Raises: NotFiniteError, with the first position that holds infinity or NaN.
    """
    if numbers.is_meta or torch.compiler.is_compiling():
        return
    finite = numbers.isfinite()
    if finite.all():
        return
    since = ""
    if first is not None:
        rows = finite.all(dim=-1).reshape(-1, numbers.shape[-2]).all(dim=0)  # (T,)
        since = f"from position {first + int((~rows).nonzero()[0])} on, "
    raise NotFiniteError(
        f"the weights overflow {str(numbers.dtype).removeprefix('torch.')} on this text: {since}"
        f"the {name} are infinite or not a number (NaN). Choose another model or another text."
    )


def require_fields(configuration: Any, *, zero_allowed: Collection[str] = ()) -> None:
    """Every field of a dataclass is what its annotation says.

    Whole numbers are at least 1 (0 for a name in `zero_allowed`), other numbers positive and
    finite, a Literal one of its choices. A None that the annotation allows is right.
    """
    for name, hint in _hints(configuration.__class__).items():
        value = getattr(configuration, name)
        if get_origin(hint) is UnionType:  # int | None, or another dataclass
            if value is None:
                continue
            hint = next(part for part in get_args(hint) if part is not type(None))
        if get_origin(hint) is Literal:
            require_choice(name, value, get_args(hint))
        elif hint is bool:
            require_choice(name, value, (True, False))
        elif hint is int:
            require_int(name, value, least=0 if name in zero_allowed else 1)
        elif hint is float:
            require_positive(name, value)
        elif not isinstance(value, hint):
            raise ValueError(f"{name} must be a {hint.__name__}, got {value!r}")
