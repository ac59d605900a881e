"""The residual stream after each layer, and the logit lens.

A recorded pass has the stream in `hidden_states`, and the output of each part in `records` and
`layers`.
Dimension letters: L layers, T tokens, C width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.checks import require_finite
from attention_core.model.transformer import Transformer


def token_norms(x: Tensor) -> Tensor:
    """The length of every token's vector: (..., T, C) -> (..., T)."""
    return torch.linalg.vector_norm(x, dim=-1)


def logit_lens(model: Transformer, states: Tensor) -> Tensor:
    """Apply the last norm and the output matrix to any layer: (..., C) -> (..., V).

    Source: nostalgebraist 2020, "interpreting GPT: the logit lens".
    Raises: ValueError if the model has no output matrix, NotFiniteError if logits overflow.
    """
    if model.unembedding is None:
        raise ValueError("this model has no output matrix, so there's no logit lens")
    normed = states if model.final_norm is None else model.final_norm(states)
    logits = normed @ model.unembedding
    require_finite("logits of some layer", logits, first=None)
    return logits


def last_row_logits(model: Transformer, hidden: Tensor) -> Tensor:
    """The next token's logits (V,) from the last row of normalized `hidden` (T, C).

    Raises: ValueError if the model has no output matrix.
    """
    if model.unembedding is None:
        raise ValueError("this model has no output matrix, so it can't predict a token")
    return (hidden[-1:] @ model.unembedding)[0]


@dataclass(frozen=True)
class LensPredictions:
    """A model's predictions at one position, after the embedding and after each layer.

    ids, probabilities: (L + 1, k), the most likely tokens of each state, in descending order.
    final: the most likely token after the last layer.
    final_probability: (L + 1,), the probability of that token at every state.
    final_rank: (L + 1,), how many tokens are more likely.
    """

    ids: Tensor
    probabilities: Tensor
    final: int
    final_probability: Tensor
    final_rank: Tensor

    @property
    def first_layer(self) -> int:
        """Number of layers after which the final token first becomes the most likely."""
        return int((self.ids[:, 0] == self.final).nonzero()[0])

    @property
    def stable_from(self) -> int:
        """Number of layers after which the final token stays the most likely."""
        differing = (self.ids[:, 0] != self.final).nonzero()
        return int(differing[-1]) + 1 if len(differing) else 0


def lens_predictions(logits: Tensor, k: int) -> LensPredictions:
    """Turn the logits of one position at every state, (L + 1, V), into predictions.

    Raises: ValueError if k is below 1 or above V.
    """
    if not 1 <= k <= logits.shape[-1]:
        raise ValueError(f"k must be between 1 and {logits.shape[-1]}, got {k}")
    probabilities = logits.float().softmax(dim=-1)
    top = probabilities.topk(k, dim=-1)
    final = int(top.indices[-1, 0])
    of_final = probabilities[:, final]
    return LensPredictions(
        ids=top.indices,
        probabilities=top.values,
        final=final,
        final_probability=of_final,
        final_rank=(probabilities > of_final[:, None]).sum(dim=-1),
    )
