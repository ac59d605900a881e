"""Rewards by a rule: what reinforcement learning would do to the tokens that a model sampled.

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
    """1 for a continuation that keeps the rule, 0 for one that does not.

    ids, text: of the continuation. word: for the rule HAS_WORD, looked for as a whole word and
    without regard to capitals; an empty one is in no text.
    Raises: ValueError for a rule that there is not.
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
    """Each reward less the mean, divided by the standard deviation of the group: G -> G.

    All are 0 where all rewards are equal. The deviation is that of the group itself (divided by G).
    Raises: ValueError for no rewards.
    """
    if not rewards:
        raise ValueError("a group needs at least 1 reward, got 0")
    if min(rewards) == max(rewards):
        return [0.0] * len(rewards)
    mean = sum(rewards) / len(rewards)
    deviation = math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / len(rewards))
    return [(reward - mean) / deviation for reward in rewards]


def token_loss(logits: Tensor, token_id: int, advantage: float) -> Tensor:
    """The loss of one sampled token: -advantage x its log-probability, a scalar. logits: (V,)."""
    return -advantage * torch.log_softmax(logits, dim=-1)[token_id]


def gradient(logits: Tensor, token_id: int, advantage: float) -> Tensor:
    """The gradient of `token_loss` by the logits: -advantage x (one-hot - p), (V,) -> (V,).

    A step of training goes the other way: it pushes the logits by -gradient.
    """
    one_hot = torch.nn.functional.one_hot(torch.tensor(token_id), len(logits)).to(logits)
    return -advantage * (one_hot - logits.softmax(dim=-1))
