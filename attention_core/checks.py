"""Argument checks that raise ValueError with the argument's name and its value."""

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
    """A forward pass produced infinity or NaN."""


_hints = cache(get_type_hints)  # per class: resolving annotations takes longer than checking them


def require_int(name: str, value: object, *, least: int = 1, most: int | None = None) -> None:
    """Check for a whole number from `least` to `most`; booleans are rejected."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if int(value) < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    if most is not None and int(value) > most:
        raise ValueError(f"{name} must be at most {most}, got {value}")


def require_positive(name: str, value: object, *, zero: bool = False) -> None:
    """Check for a finite number above 0 (or at least 0 with `zero`); booleans are rejected."""
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
    if not (math.isfinite(number) and (number > 0 or (zero and number == 0))):
        limit = "at least 0" if zero else "above 0"
        raise ValueError(f"{name} must be a finite number, {limit}, got {value!r}")


def require_choice(name: str, value: object, choices: Collection[object]) -> None:
    """Check that the value is one of `choices`, with the same type."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        expected = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {expected}, got {value!r}")


def require_finite(name: str, numbers: Tensor, *, first: int | None = 0) -> None:
    """Check that the tensor `name` (..., T, N) is finite at all T positions.

    first: position of the first row, or None if rows aren't positions.

    Waits for the device on a GPU. Does nothing on the meta device or during compilation, where
    tensors have no values.
    Raises: NotFiniteError with the first position that has infinity or NaN.
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
    """Check every field of a dataclass against its type annotation.

    Whole numbers must be at least 1 (0 for names in `zero_allowed`), floats positive and finite,
    and literals one of their choices. None is allowed where the annotation allows it.
    """
    for name, hint in _hints(configuration.__class__).items():
        value = getattr(configuration, name)
        if get_origin(hint) is UnionType:  # int | None, for example
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
