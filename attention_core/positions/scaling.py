"""Rotary positions for texts that are longer than those of the training.

Pair i of a head's numbers turns by theta ** (-2i/D) radians from one token to the next. The fast
pairs have gone round many times within the trained length L, and have shown training every angle.
The slow ones have not: beyond L they reach angles that the weights have never met. A scaling turns
them more slowly, so that `factor` times as many tokens stay within the angles of the training.

Dimension letters: B batch, T tokens, D head size, L trained length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.checks import require_fields

LARGEST_FACTOR = 1e6  # larger than of any model that was published


def plain_frequencies(
    head_size: int, theta: float, device: torch.device | str | None = None
) -> Tensor:
    """The angle in radians from one token to the next, of every pair: (D/2,) float32.

    Source: Su et al. 2021, https://arxiv.org/abs/2104.09864.
    """
    even = torch.arange(0, head_size, 2, device=device, dtype=torch.float32)
    return 1.0 / theta ** (even / head_size)


@dataclass(frozen=True)
class RopeScaling:
    """Other frequencies than the plain ones; `factor` says for how many times the trained length.

    Raises: ValueError, with the numbers, for a factor that is not from 1 to `LARGEST_FACTOR`, and
    for a field that is not positive.
    """

    factor: float

    def __post_init__(self) -> None:
        """Check the numbers."""
        require_fields(self)
        if not 1.0 <= self.factor <= LARGEST_FACTOR:
            raise ValueError(f"factor must be 1 to {LARGEST_FACTOR:g}, got {self.factor}")

    @property
    def cosine_factor(self) -> float:
        """What cosines and sines are multiplied with; scores grow by its square."""
        return 1.0

    def check(self, head_size: int, theta: float) -> None:
        """Raise ValueError, with the numbers, for a head or a theta that cannot be scaled so."""

    def frequencies(self, plain: Tensor, theta: float, n_tokens: Tensor) -> Tensor:
        """The scaled frequencies of a text with so many tokens.

        Shapes: plain (D/2,); n_tokens (1,), or (B, 1) for the rows of a batch -> (D/2,), or
        (1, D/2) and (B, 1, D/2) where they depend on the number of tokens.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class LinearScaling(RopeScaling):
    """Position interpolation: all pairs turn `factor` times as slowly.

    The angles are those of the training again, but neighbours stand closer than they ever did.
    Source: Chen et al. 2023, https://arxiv.org/abs/2306.15595.
    """

    def frequencies(self, plain: Tensor, theta: float, n_tokens: Tensor) -> Tensor:
        """As of `RopeScaling`: (D/2,)."""
        return plain / self.factor


@dataclass(frozen=True)
class DynamicScaling(RopeScaling):
    """Dynamic NTK: the longer the text, the slower; nothing changes within the trained length.

    The slowest pair is slowed down by g = factor * n_tokens / L - (factor - 1), the fastest not at
    all, those between by powers of g. So the frequencies of a text change while it grows. Keys that
    a cache holds keep the rotation that they were given when they were new, as in transformers:
    beyond the trained length, steps with a cache are not what a pass over the whole text computes.
    Each pass is scaled by its own length, where a transformers model remembers a longer one.
    Source: the forum posts of bloc97 and emozilla that https://arxiv.org/abs/2309.00071, section
    3.3, describes. Each row of a batch counts its own tokens.
    """

    trained_length: int

    def check(self, head_size: int, theta: float) -> None:
        """Raise ValueError for a head of a single pair, which is the fastest and the slowest."""
        if head_size < 4:
            raise ValueError(f"dynamic scaling needs a head size of at least 4, got {head_size}")

    def frequencies(self, plain: Tensor, theta: float, n_tokens: Tensor) -> Tensor:
        """As of `RopeScaling`: (1, D/2) or (B, 1, D/2)."""
        slower = self.factor * n_tokens / self.trained_length - (self.factor - 1)
        powers = torch.arange(len(plain), device=plain.device) / (len(plain) - 1)  # 0 to 1
        return plain / slower.clamp(min=1.0)[..., None] ** powers


@dataclass(frozen=True)
class YarnScaling(RopeScaling):
    """YaRN: fast pairs keep their speed, slow ones are slowed down by `factor`, a ramp between.

    A pair is fast that turns `beta_fast` times or more within the trained length, slow with
    `beta_slow` times or fewer. Cosines and sines are multiplied with `attention_factor`, by default
    0.1 ln(factor) + 1, which sharpens the softmax of long texts. `truncate` begins and ends the
    ramp at whole pairs.
    Source: Peng et al. 2023, https://arxiv.org/abs/2309.00071.
    Raises: ValueError for a beta_fast below beta_slow.
    """

    trained_length: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None
    truncate: bool = True

    def __post_init__(self) -> None:
        """Check the numbers."""
        super().__post_init__()
        if self.beta_fast < self.beta_slow:
            raise ValueError(
                f"beta_fast ({self.beta_fast}) must not be below beta_slow ({self.beta_slow})"
            )

    @property
    def cosine_factor(self) -> float:
        """`attention_factor`, or its default."""
        default = 0.1 * math.log(self.factor) + 1.0
        return default if self.attention_factor is None else self.attention_factor

    def check(self, head_size: int, theta: float) -> None:
        """Raise ValueError for a theta of at most 1, with which no pair is slower than another."""
        if theta <= 1:
            raise ValueError(f"YaRN needs a rope_theta above 1, got {theta}")

    def frequencies(self, plain: Tensor, theta: float, n_tokens: Tensor) -> Tensor:
        """As of `RopeScaling`: (D/2,)."""
        n_pairs = len(plain)
        # which pair, as a number between whole ones, turns so often within the trained length
        circle = math.log(self.trained_length) - math.log(2 * math.pi)
        begin, end = (
            n_pairs * (circle - math.log(turns)) / math.log(theta)
            for turns in (self.beta_fast, self.beta_slow)
        )
        if self.truncate:
            begin, end = float(math.floor(begin)), float(math.ceil(end))
        begin, end = max(begin, 0.0), min(end, 2.0 * n_pairs - 1)
        steps = torch.arange(n_pairs, device=plain.device, dtype=torch.float32) - begin
        slowed = (steps / ((end - begin) or 0.001)).clamp(0.0, 1.0)  # 0: fast, 1: slow
        return plain * (1.0 - slowed) + plain / self.factor * slowed


@dataclass(frozen=True)
class Llama3Scaling(RopeScaling):
    """Llama 3.1: as YaRN without its `attention_factor`, the ramp over the turns themselves.

    A pair that turns more than `high_freq_factor` times within the trained length keeps its speed,
    one that turns less than `low_freq_factor` times is slowed down by `factor`.
    Source: Grattafiori et al. 2024, https://arxiv.org/abs/2407.21783, and Meta's own code.
    Raises: ValueError for a high_freq_factor that is not above low_freq_factor.
    """

    trained_length: int
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0

    def __post_init__(self) -> None:
        """Check the numbers."""
        super().__post_init__()
        if self.high_freq_factor <= self.low_freq_factor:
            raise ValueError(
                f"high_freq_factor ({self.high_freq_factor}) must be above low_freq_factor "
                f"({self.low_freq_factor})"
            )

    def frequencies(self, plain: Tensor, theta: float, n_tokens: Tensor) -> Tensor:
        """As of `RopeScaling`: (D/2,)."""
        turns = self.trained_length * plain / (2 * math.pi)
        width = self.high_freq_factor - self.low_freq_factor
        kept = ((turns - self.low_freq_factor) / width).clamp(0.0, 1.0)  # 1: fast, 0: slow
        return plain * kept + plain / self.factor * (1.0 - kept)
