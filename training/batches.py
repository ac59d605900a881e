"""Training batches: windows of the books, and masked tokens for BERT.

Each batch depends only on the seed and the step, so a run that's resumed sees the same batches.
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
    """Texts with masked tokens, and the tokens to predict.

    inputs: (B, T), the model's input. is_target: (B, T), True at positions to predict, even where
    the input isn't masked. targets: the original tokens at these positions, in order.
    """

    inputs: Tensor
    is_target: Tensor
    targets: Tensor


def windows(ids: NDArray[np.uint16], count: int, length: int, *, seed: tuple[int, ...]) -> Tensor:
    """`count` random windows of the books: (count, length), int64.

    Raises: ValueError if the books are shorter than a window.
    """
    if len(ids) < length:
        raise ValueError(f"the books have {len(ids)} tokens, but a window needs {length}")
    starts = np.random.default_rng(seed).integers(0, len(ids) - length + 1, count)
    rows = np.stack([ids[start : start + length] for start in starts])
    return torch.from_numpy(rows.astype(np.int64))


def mask_tokens(
    texts: Tensor, share: float, n_tokens: int, mask_id: int, *, seed: int
) -> MaskedTexts:
    """Select a share of the tokens to predict, and hide them as in BERT.

    Of the selected tokens, 80 % are masked, 10 % are replaced by a random token, and 10 % stay.

    n_tokens: size of the vocabulary without special tokens.
    Source: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3.1.
    """
    generator = torch.Generator().manual_seed(seed)
    is_target = torch.rand(texts.shape, generator=generator) < share
    fate = torch.rand(texts.shape, generator=generator)
    others = torch.randint(0, n_tokens, texts.shape, generator=generator)
    visible = torch.where(is_target & (fate < 0.8), mask_id, texts)
    visible = torch.where(is_target & (fate >= 0.8) & (fate < 0.9), others, visible)
    return MaskedTexts(visible, is_target, texts[is_target])
