"""Reads the rotary options of a Llama configuration: theta, scaling, context length."""

from __future__ import annotations

import math
from dataclasses import dataclass

from attention_core.positions.scaling import (
    LARGEST_FACTOR,
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    RopeScaling,
    YarnScaling,
)
from pretrained.checkpoint import rope_kind, rope_table
from pretrained.options import Config, flag, number, size

LONGEST_CONTEXT = 100_000_000  # tokens


@dataclass(frozen=True)
class RotaryOptions:
    """The base of the frequencies, their scaling, and the context length in tokens."""

    theta: float
    scaling: RopeScaling | None
    context_length: int


def rotary_options(hf: Config) -> RotaryOptions:
    """Read the options like transformers, from the table of transformers 5 or from older options.

    For linear and dynamic scaling, `max_position_embeddings` is the trained length, so the context
    is `factor` times as long. For other scalings, the trained length is in a separate option.
    Raises: ValueError with the option's name for a value that is missing, not a number or out of
    range.
    """
    table = rope_table(hf)
    theta = number(table if table.get("rope_theta") is not None else hf, "rope_theta", 10_000.0)
    if theta < 1:  # its powers would overflow float32
        raise ValueError(f"rope_theta must be at least 1, not {theta!r}")
    longest = _length(hf, "max_position_embeddings")
    kind = rope_kind(table)
    if kind == "default":
        return RotaryOptions(theta, None, longest)
    factor = _setting(table, "factor")
    if factor < 1:
        raise ValueError(f"factor must be at least 1, not {factor!r}")
    if kind == "linear":
        return RotaryOptions(theta, LinearScaling(factor), int(longest * factor))
    if kind == "dynamic":
        return RotaryOptions(theta, DynamicScaling(factor, longest), int(longest * factor))
    trained = _trained_length(hf, table, longest)
    if kind == "llama3":
        slow, fast = _setting(table, "low_freq_factor"), _setting(table, "high_freq_factor")
        return RotaryOptions(theta, Llama3Scaling(factor, trained, slow, fast), longest)
    scaling = YarnScaling(
        factor,
        trained,
        beta_fast=_setting(table, "beta_fast", 32.0),
        beta_slow=_setting(table, "beta_slow", 1.0),
        attention_factor=_attention_factor(table, factor),
        truncate=flag(table, "truncate", "truncate" not in table),  # null means false
    )
    return RotaryOptions(theta, scaling, max(longest, int(trained * factor)))


def _attention_factor(table: Config, factor: float) -> float | None:
    """`attention_factor`, or the ratio of two scales as in DeepSeek's files; otherwise None."""
    if table.get("attention_factor") is not None:
        return _setting(table, "attention_factor")
    if not table.get("mscale") or not table.get("mscale_all_dim"):  # as in transformers, 0 is unset
        return None
    above, below = (
        0.1 * _setting(table, name) * math.log(factor) + 1.0
        for name in ("mscale", "mscale_all_dim")
    )
    return above / below


def _trained_length(hf: Config, table: Config, longest: int) -> int:
    """The length before scaling; an option outside the table takes precedence."""
    option = "original_max_position_embeddings"
    for options in (hf, table):
        if options.get(option) is not None:
            return _length(options, option)
    return longest


def _length(options: Config, option: str) -> int:
    """A number of tokens, checked against `LONGEST_CONTEXT`."""
    length = size(options, option)
    if length > LONGEST_CONTEXT:
        raise ValueError(f"{option} is {length:,}, but must be at most {LONGEST_CONTEXT:,}")
    return length


def _setting(table: Config, option: str, default: float | None = None) -> float:
    """A number of a scaling, checked against the range that float32 can handle."""
    value = number(table, option, default)
    if not 1 / LARGEST_FACTOR <= value <= LARGEST_FACTOR:
        raise ValueError(
            f"{option} must be from {1 / LARGEST_FACTOR:g} to {LARGEST_FACTOR:g}, not {value!r}"
        )
    return value
