"""Choose the next token from the logits of one position."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.checks import require_int, require_positive

_LARGEST_FLOAT32 = torch.finfo(torch.float32).max
_SUM_TOLERANCE = 1e-6  # float32 sums of probabilities are off by a few multiples of 2**-24


@dataclass(frozen=True)
class Sampling:
    """How to choose the next token; greedy by default.

    temperature: divides the logits. 0 is greedy, and so is a value so small that the division
        overflows.
    top_k: keep the k most likely tokens, and any token whose logit equals the k-th one.
    top_p: keep the smallest set of most likely tokens whose probabilities add up to p (nucleus
        sampling, Holtzman et al. 2019, https://arxiv.org/abs/1904.09751). 1 keeps all tokens. A sum
        less than 1e-6 below p counts as p, because float32 rounds sums: 0.5 + 0.3 reaches 0.8.
    seed: makes the draws reproducible.

    Raises: ValueError for a negative or infinite temperature, `top_k` below 1, `top_p` outside
    (0, 1], or a seed that isn't a whole number from 0 to 2**63 - 1.

    >>> sampling = Sampling(temperature=0.8, top_k=2)
    >>> probabilities(torch.tensor([2.0, 1.0, 0.0]), sampling)
    tensor([0.7773, 0.2227, 0.0000])
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require_positive("temperature", self.temperature, zero=True)
        if self.top_k is not None:
            require_int("top_k", self.top_k)
        if self.top_p is not None:
            require_positive("top_p", self.top_p)
            if self.top_p > 1:
                raise ValueError(f"top_p must be above 0 and at most 1, got {self.top_p}")
        require_int("seed", self.seed, least=0, most=2**63 - 1)

    @property
    def greedy(self) -> bool:
        """Whether the temperature is 0, so that no random numbers are used."""
        return self.temperature == 0


def probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """The distribution to draw the token from: logits (V,) -> (V,), float32, sum 1.

    Applies the temperature, then top-k, then top-p to the remaining tokens, all in float32. Greedy
    sampling gives one token a probability of 1.
    Raises: ValueError if the logits aren't (V,), or the largest isn't a finite number.
    """
    logits = logits.float()
    if _is_greedy(logits, sampling):
        return torch.nn.functional.one_hot(logits.argmax(), logits.shape[-1]).float()
    return distribution(logits, sampling)


def distribution(logits: Tensor, sampling: Sampling) -> Tensor:
    """`probabilities` for finite float32 logits (V,) and a temperature above 0.

    It has no checks, so it never waits for a GPU.
    """
    # subtracting the largest logit changes no probability and avoids overflow
    logits = (logits - logits.max()) / sampling.temperature
    if sampling.top_k is not None:
        kth = logits.topk(min(sampling.top_k, logits.shape[-1])).values[-1]
        logits = logits.masked_fill(logits < kth, -math.inf)
    if sampling.top_p is not None and sampling.top_p < 1:
        logits = _keep_nucleus(logits, sampling.top_p)
    return torch.softmax(logits, dim=-1)


def sample(logits: Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    """Draw one token id from logits (V,) on the generator's device.

    Raises: ValueError as in `probabilities`.
    """
    if _is_greedy(logits, sampling):
        return int(logits.argmax())
    return int(torch.multinomial(probabilities(logits, sampling), 1, generator=generator))


def _is_greedy(logits: Tensor, sampling: Sampling) -> bool:
    """Whether the temperature is 0, or so small that dividing overflows float32."""
    if logits.dim() != 1 or not logits.numel():
        raise ValueError(f"logits must be (vocabulary,), got shape {tuple(logits.shape)}")
    largest = float(logits.max())
    if not math.isfinite(largest):
        raise ValueError(f"can't choose a token: the largest logit is {largest}")
    # even if the largest logit is below 1, the others may overflow
    return sampling.greedy or max(abs(largest), 1.0) / sampling.temperature > _LARGEST_FLOAT32


def _keep_nucleus(logits: Tensor, top_p: float) -> Tensor:
    """Mask every token that isn't needed to reach the cumulative probability top_p."""
    ordered, order = logits.sort(descending=True)
    is_reached = torch.softmax(ordered, dim=-1).cumsum(dim=-1) >= top_p - _SUM_TOLERANCE
    # a token is masked if the ones before it reach top_p; the first always stays
    is_forbidden = torch.nn.functional.pad(is_reached[:-1], (1, 0), value=False)
    forbidden = torch.empty_like(is_forbidden).scatter_(0, order, is_forbidden)
    return logits.masked_fill(forbidden, -math.inf)
