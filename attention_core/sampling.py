"""From the logits of one position to the next token."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.checks import require_int, require_positive

_LARGEST_FLOAT32 = torch.finfo(torch.float32).max
_SUM_TOLERANCE = 1e-6  # a sum of probabilities in float32 is off by a few units of 2**-24


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen. The default is greedy: the likeliest token.

    `temperature` divides the logits (0 is greedy, and so is one so small that the division
    overflows); `top_k` keeps the k likeliest tokens, and with them every token whose logit equals
    that of the k-th; `top_p` keeps the smallest set of likeliest tokens whose probabilities reach p
    (nucleus sampling, Holtzman et al. 2019, https://arxiv.org/abs/1904.09751), at 1 all of them. A
    sum less than 1e-6 short of p counts as p, because float32 rounds sums: 0.5 and 0.3 reach 0.8.
    `seed` makes the draws repeatable.
    Raises: ValueError for a negative or infinite temperature, `top_k` below 1, `top_p` outside
    (0, 1], or a seed that is not a whole number from 0 to 2**63 - 1.
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
        """Whether no random number is used, whatever the logits."""
        return self.temperature == 0


def probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """The distribution that a token is drawn from: logits (V,) -> (V,) of float32, summing to 1.

    Temperature first, then top-k, then top-p on what is left, all in float32 whatever the logits
    are. Greedy puts everything on one token.
    Raises: ValueError for logits that are not (V), or whose largest is not a finite number.
    """
    logits = logits.float()
    if _is_greedy(logits, sampling):
        return torch.nn.functional.one_hot(logits.argmax(), logits.shape[-1]).float()
    return distribution(logits, sampling)


def distribution(logits: Tensor, sampling: Sampling) -> Tensor:
    """`probabilities` of finite float32 logits (V,) at a temperature above 0.

    Nothing is checked, so that nothing waits for a GPU.
    """
    # relative to the largest logit, which changes no probability and keeps the numbers small
    logits = (logits - logits.max()) / sampling.temperature
    if sampling.top_k is not None:
        kth = logits.topk(min(sampling.top_k, logits.shape[-1])).values[-1]
        logits = logits.masked_fill(logits < kth, -math.inf)
    if sampling.top_p is not None and sampling.top_p < 1:
        logits = _keep_nucleus(logits, sampling.top_p)
    return torch.softmax(logits, dim=-1)


def sample(logits: Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    """Draw one token id: logits (V,), on the generator's device; errors as in `probabilities`."""
    if _is_greedy(logits, sampling):
        return int(logits.argmax())
    return int(torch.multinomial(probabilities(logits, sampling), 1, generator=generator))


def _is_greedy(logits: Tensor, sampling: Sampling) -> bool:
    """Whether the temperature is 0, or so small that logits divided by it overflow float32."""
    if logits.dim() != 1 or not logits.numel():
        raise ValueError(f"logits must be (vocabulary,), got shape {tuple(logits.shape)}")
    largest = float(logits.max())
    if not math.isfinite(largest):
        raise ValueError(f"no token can be chosen: the largest of the logits is {largest}")
    # below a magnitude of 1 nothing overflows, but the other logits do
    return sampling.greedy or max(abs(largest), 1.0) / sampling.temperature > _LARGEST_FLOAT32


def _keep_nucleus(logits: Tensor, top_p: float) -> Tensor:
    """Forbid every token that is not needed to reach the cumulative probability `top_p`."""
    ordered, order = logits.sort(descending=True)
    is_reached = torch.softmax(ordered, dim=-1).cumsum(dim=-1) >= top_p - _SUM_TOLERANCE
    # a token is forbidden where those before it reach p; the first always stays
    is_forbidden = torch.nn.functional.pad(is_reached[:-1], (1, 0), value=False)
    forbidden = torch.empty_like(is_forbidden).scatter_(0, order, is_forbidden)
    return logits.masked_fill(forbidden, -math.inf)
