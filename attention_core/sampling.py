"""From the logits of one position to the next token."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen. The default is greedy: the likeliest token.

    `temperature` divides the logits (0 is greedy, and so is one so small that the division
    overflows); `top_k` keeps the k likeliest tokens, and with them every token whose logit equals
    that of the k-th; `top_p` keeps the smallest set of likeliest tokens whose probabilities reach p
    (nucleus sampling, Holtzman et al. 2019, https://arxiv.org/abs/1904.09751), at 1 all of them;
    `seed` makes the draws repeatable.
    Raises: ValueError for a negative or infinite temperature, `top_k` below 1, or `top_p` outside
    (0, 1].
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"temperature must be at least 0, got {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be at least 1 or None, got {self.top_k}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, got {self.top_p}")

    @property
    def greedy(self) -> bool:
        """Whether no random number is used, whatever the logits."""
        return self.temperature == 0


def probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """The distribution that a token is drawn from: logits (V,) -> (V,) of float32, summing to 1.

    Temperature first, then top-k, then top-p on what is left, all in float32 whatever the logits
    are. Greedy puts everything on one token.
    """
    logits = logits.float()
    if _is_greedy(logits, sampling):
        return torch.nn.functional.one_hot(logits.argmax(), logits.shape[-1]).float()
    # relative to the largest logit, which changes no probability and keeps the numbers small
    logits = (logits - logits.max()) / sampling.temperature
    if sampling.top_k is not None:
        kth = logits.topk(min(sampling.top_k, logits.shape[-1])).values[-1]
        logits = logits.masked_fill(logits < kth, -math.inf)
    if sampling.top_p is not None and sampling.top_p < 1:
        logits = _keep_nucleus(logits, sampling.top_p)
    return torch.softmax(logits, dim=-1)


def sample(logits: Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    """Draw one token id: logits (V,), on the generator's device."""
    if _is_greedy(logits, sampling):
        return int(logits.argmax())
    return int(torch.multinomial(probabilities(logits, sampling), 1, generator=generator))


def _is_greedy(logits: Tensor, sampling: Sampling) -> bool:
    """Whether the temperature is 0, or so small that logits divided by it overflow float32."""
    if sampling.greedy:
        return True
    largest = max(abs(float(logits.max())), 1.0)  # at 0 nothing overflows, but the rest does
    return largest / sampling.temperature > torch.finfo(torch.float32).max


def _keep_nucleus(logits: Tensor, top_p: float) -> Tensor:
    """Forbid every token that is not needed to reach the cumulative probability `top_p`."""
    ordered, order = logits.sort(descending=True)
    share = torch.softmax(ordered, dim=-1)
    before = share.cumsum(dim=-1) - share  # mass of all likelier tokens; 0 for the first
    forbidden = torch.empty_like(logits, dtype=torch.bool).scatter_(0, order, before >= top_p)
    return logits.masked_fill(forbidden, -math.inf)
