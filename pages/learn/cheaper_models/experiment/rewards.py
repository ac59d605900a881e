"""Rule-based rewards, and the resulting gradient on sampled tokens.

Dimension letters: G continuations of one text, V vocabulary.
Sources: Williams 1992 (REINFORCE), https://doi.org/10.1007/BF00992696; the advantage within a group
of continuations: DeepSeekMath 2024 (GRPO), https://arxiv.org/abs/2402.03300.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import torch
from torch import Tensor

NO_TOKEN_TWICE, FULL_STOP, HAS_WORD = "no token twice", "a full stop", "a word of your own"
RULES = (NO_TOKEN_TWICE, FULL_STOP, HAS_WORD)


def reward(rule: str, ids: Sequence[int], text: str, word: str = "") -> float:
    """Return 1 for a continuation that follows the rule, otherwise 0.

    ids, text: the continuation. word: the word that HAS_WORD looks for, as a whole word and
    ignoring case; an empty word never matches.
    Raises: ValueError for an unknown rule.
    """
    if rule == NO_TOKEN_TWICE:
        kept = len(set(ids)) == len(ids)
    elif rule == FULL_STOP:
        kept = re.search(r"\.(\s|$)", text) is not None
    elif rule == HAS_WORD:
        whole = rf"(?<!\w){re.escape(word.strip())}(?!\w)"
        kept = bool(word.strip()) and re.search(whole, text, re.IGNORECASE) is not None
    else:
        raise ValueError(f"the rule must be one of {RULES}, got {rule!r}")
    return float(kept)


def advantages(rewards: Sequence[float]) -> list[float]:
    """Rewards minus their mean, divided by their standard deviation: G -> G.

    All are 0 if all rewards are equal. The standard deviation divides by G, not by G - 1.
    Raises: ValueError for an empty list.
    """
    if not rewards:
        raise ValueError("a group needs at least 1 reward, got 0")
    if min(rewards) == max(rewards):
        return [0.0] * len(rewards)
    mean = sum(rewards) / len(rewards)
    deviation = math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / len(rewards))
    return [(reward - mean) / deviation for reward in rewards]


def token_loss(logits: Tensor, token_id: int, advantage: float) -> Tensor:
    """Loss of one sampled token, -advantage * log-probability. logits: (V,)."""
    return -advantage * torch.log_softmax(logits, dim=-1)[token_id]


def gradient(logits: Tensor, token_id: int, advantage: float) -> Tensor:
    """Gradient of `token_loss`, -advantage * (one-hot - p): (V,) -> (V,).

    A training step goes in the opposite direction and changes the logits by -gradient.
    """
    one_hot = torch.nn.functional.one_hot(torch.tensor(token_id), len(logits)).to(logits)
    return -advantage * (one_hot - logits.softmax(dim=-1))
