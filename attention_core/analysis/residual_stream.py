"""What a model holds after each layer: the residual stream, and the logit lens through it.

Dimension letters: L layers, T tokens, C width, V vocabulary. The stream itself is in the output
of a recorded pass: `hidden_states`, and what each part adds in `records` and `layers`.
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
    """The model's last norm and output matrix on states of any layer: (..., C) -> (..., V).

    Source: nostalgebraist 2020, "interpreting GPT: the logit lens".
    Raises: ValueError for a model without an output matrix, NotFiniteError where logits overflow.
    """
    if model.unembedding is None:
        raise ValueError("a model without an output matrix has no logits to look at")
    normed = states if model.final_norm is None else model.final_norm(states)
    logits = normed @ model.unembedding
    require_finite("logits of some layer", logits, first=None)
    return logits


def last_row_alone(model: Transformer, hidden: Tensor) -> Tensor:
    """The next token's logits (V,) from the last row of `hidden` (T, C), which is normed already.

    Raises: ValueError for a model without an output matrix.
    """
    if model.unembedding is None:
        raise ValueError("a model without an output matrix predicts no next token")
    return (hidden[-1:] @ model.unembedding)[0]


@dataclass(frozen=True)
class Lens:
    """What a model would predict after the embeddings and after each layer, at one position.

    ids, probabilities: (L + 1, k), the likeliest tokens of each state, likeliest first.
    final: the likeliest token after the last layer. final_probability, final_rank: (L + 1,), the
    probability of that token at every state and how many tokens are likelier.
    """

    ids: Tensor
    probabilities: Tensor
    final: int
    final_probability: Tensor
    final_rank: Tensor

    @property
    def first_named(self) -> int:
        """The number of layers after which the final token is first the likeliest."""
        return int((self.ids[:, 0] == self.final).nonzero()[0])

    @property
    def settled(self) -> int:
        """The number of layers from which on the final token stays the likeliest."""
        differing = (self.ids[:, 0] != self.final).nonzero()
        return int(differing[-1]) + 1 if len(differing) else 0


def lens_at(logits: Tensor, k: int) -> Lens:
    """Read the logits of one position at every state, (L + 1, V), as predictions.

    Raises: ValueError if k is below 1 or above V.
    """
    if not 1 <= k <= logits.shape[-1]:
        raise ValueError(f"k must be between 1 and {logits.shape[-1]}, got {k}")
    probabilities = logits.float().softmax(dim=-1)
    top = probabilities.topk(k, dim=-1)
    final = int(top.indices[-1, 0])
    of_final = probabilities[:, final]
    return Lens(
        ids=top.indices,
        probabilities=top.values,
        final=final,
        final_probability=of_final,
        final_rank=(probabilities > of_final[:, None]).sum(dim=-1),
    )
