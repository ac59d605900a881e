"""Scaled rotary positions, for texts longer than those seen in training.

From one token to the next, pair i of a head's dimensions rotates by theta ** (-2i/D) radians. The
fast pairs complete many rotations within the trained length L, so the model has seen every angle in
training. The slow ones don't: beyond L they reach angles that are new to the model. A scaling slows
them down so that texts `factor` times as long stay within the trained angles.

Dimension letters: B batch, T tokens, D head size, L trained length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.checks import require_fields

LARGEST_FACTOR = 1e6  # larger than in any published model


def plain_frequencies(
    head_size: int, theta: float, device: torch.device | str | None = None
) -> Tensor:
    """Each pair's angle in radians from one token to the next: (D/2,), float32.

    Source: Su et al. 2021, https://arxiv.org/abs/2104.09864.
    """
    even = torch.arange(0, head_size, 2, device=device, dtype=torch.float32)
    return 1.0 / theta ** (even / head_size)


@dataclass(frozen=True)
class RopeScaling:
    """Base class of scalings. `factor` is the new length over the trained length.

    Raises: ValueError with the numbers if `factor` isn't between 1 and `LARGEST_FACTOR`, or a field
    isn't positive.
    """

    factor: float

    def __post_init__(self) -> None:
        """Check the numbers."""
        require_fields(self)
        if not 1.0 <= self.factor <= LARGEST_FACTOR:
            raise ValueError(f"factor must be 1 to {LARGEST_FACTOR:g}, got {self.factor}")

    @property
    def cosine_factor(self) -> float:
        """Factor for cosines and sines; the scores grow with its square."""
        return 1.0

    def check(self, head_size: int, theta: float) -> None:
        """Raise ValueError if the scaling doesn't work with this head size or theta."""

    def frequencies(self, plain: Tensor, theta: float, n_tokens: Tensor) -> Tensor:
        """The scaled frequencies for a text of `n_tokens`.

        Shapes: plain (D/2,); n_tokens (1,), or (B, 1) for the rows of a batch. Returns (D/2,), or
        (1, D/2) and (B, 1, D/2) if the frequencies depend on the number of tokens.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class LinearScaling(RopeScaling):
    """Position interpolation: all pairs rotate `factor` times slower.

    Angles stay within the trained range, but neighboring tokens get closer than they were in
    training.
    Source: Chen et al. 2023, https://arxiv.org/abs/2306.15595.
    """

    def frequencies(self, plain: Tensor, theta: float, n_tokens: Tensor) -> Tensor:
        """The scaled frequencies (D/2,), as in `RopeScaling`."""
        return plain / self.factor


@dataclass(frozen=True)
class DynamicScaling(RopeScaling):
    """Dynamic NTK: the longer the text, the slower the rotation.

    Nothing changes within the trained length. Beyond it, the slowest pair is slowed down by g =
    factor * n_tokens / L - (factor - 1), the fastest pair not at all, and the pairs in between by
    powers of g.

    So frequencies change while a text grows. Cached keys keep the rotation they got when they were
    new, as in transformers, so beyond L decoding with a cache differs from a pass over the whole
    text. Each pass uses its own length, while a transformers model remembers the longest. Each row
    of a batch has its own length.
    Source: posts by bloc97 and emozilla, described in https://arxiv.org/abs/2309.00071, section
    3.3.
    """

    trained_length: int

    def check(self, head_size: int, theta: float) -> None:
        """Raise ValueError if the head's only pair would be both fastest and slowest."""
        if head_size < 4:
            raise ValueError(f"dynamic scaling needs a head size of at least 4, got {head_size}")

    def frequencies(self, plain: Tensor, theta: float, n_tokens: Tensor) -> Tensor:
        """The scaled frequencies (1, D/2) or (B, 1, D/2), as in `RopeScaling`."""
        slower = self.factor * n_tokens / self.trained_length - (self.factor - 1)
        powers = torch.arange(len(plain), device=plain.device) / (len(plain) - 1)  # 0 to 1
        return plain / slower.clamp(min=1.0)[..., None] ** powers


@dataclass(frozen=True)
class YarnScaling(RopeScaling):
    """YaRN: slow pairs are slowed down by `factor`, fast pairs aren't.

    A pair is fast if it completes at least `beta_fast` rotations within the trained length, and
    slow if it completes at most `beta_slow`. A ramp connects the two. Cosines and sines are
    multiplied by `attention_factor`, by default 0.1 ln(factor) + 1, which sharpens the softmax for
    long texts. `truncate` makes the ramp start and end at whole pairs.
    Source: Peng et al. 2023, https://arxiv.org/abs/2309.00071.
    Raises: ValueError if beta_fast is below beta_slow.
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
        """Raise ValueError for a theta of 1 or less, where no pair is slower than another."""
        if theta <= 1:
            raise ValueError(f"YaRN needs a rope_theta above 1, got {theta}")

    def frequencies(self, plain: Tensor, theta: float, n_tokens: Tensor) -> Tensor:
        """The scaled frequencies (D/2,), as in `RopeScaling`."""
        n_pairs = len(plain)
        # fractional index of the pair that completes this many rotations within the trained length
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
    """Llama 3.1: YaRN without `attention_factor`, with the ramp over the rotations.

    A pair that completes more than `high_freq_factor` rotations within the trained length keeps its
    speed. One that completes fewer than `low_freq_factor` is slowed down by `factor`.
    Source: Grattafiori et al. 2024, https://arxiv.org/abs/2407.21783, and Meta's own code.
    Raises: ValueError if high_freq_factor isn't above low_freq_factor.
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
        """The scaled frequencies (D/2,), as in `RopeScaling`."""
        turns = self.trained_length * plain / (2 * math.pi)
        width = self.high_freq_factor - self.low_freq_factor
        kept = ((turns - self.low_freq_factor) / width).clamp(0.0, 1.0)  # 1: fast, 0: slow
        return plain * kept + plain / self.factor * (1.0 - kept)
