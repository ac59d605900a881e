"""What a step learns from: windows of the books, and the words that BERT is asked for.

Every batch follows from the seed and the number of its step alone, so that a run which was
stopped and goes on sees the same ones.
Dimension letters: B batch, T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class MaskedTexts:
    """Texts of which some tokens are asked for.

    `seen` (B, T) is what the model reads; `asked` (B, T) is True where it has to name the token of
    the text, whatever it reads there; `answers` are those tokens, in the order of `asked`.
    """

    seen: Tensor
    asked: Tensor
    answers: Tensor


def windows(ids: NDArray[np.uint16], count: int, length: int, *, seed: tuple[int, ...]) -> Tensor:
    """`count` random windows of the books: (count, length), int64.

    Raises: ValueError if the books are shorter than a window.
    """
    if len(ids) < length:
        raise ValueError(f"the books have {len(ids)} tokens, a window needs {length}")
    starts = np.random.default_rng(seed).integers(0, len(ids) - length + 1, count)
    rows = np.stack([ids[start : start + length] for start in starts])
    return torch.from_numpy(rows.astype(np.int64))


def masked(texts: Tensor, share: float, n_tokens: int, mask_id: int, *, seed: int) -> MaskedTexts:
    """Ask for a share of the tokens: 80 % are masked, 10 % replaced by any token, 10 % stay.

    n_tokens: how many tokens the vocabulary has beside those with a meaning of their own.
    Source: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3.1.
    """
    generator = torch.Generator().manual_seed(seed)
    asked = torch.rand(texts.shape, generator=generator) < share
    fate = torch.rand(texts.shape, generator=generator)
    others = torch.randint(0, n_tokens, texts.shape, generator=generator)
    seen = torch.where(asked & (fate < 0.8), mask_id, texts)
    seen = torch.where(asked & (fate >= 0.8) & (fate < 0.9), others, seen)
    return MaskedTexts(seen, asked, texts[asked])
