"""What enters layer 0, taken apart and put together again."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.model.output import EmbeddingParts
from attention_core.model.transformer import Transformer


@dataclass(frozen=True)
class InputCheck:
    """The parts of the input embedding beside the tensor that really entered layer 0.

    parts: recorded where the forward pass adds them up. entered: (B, T, C), what layer 0 read.
    again: (B, T, C), the parts added up in another order, then normed. difference: the largest
    absolute difference of `again` from `entered`; rounding, if all is well.
    """

    parts: EmbeddingParts
    entered: Tensor
    again: Tensor
    difference: float


@torch.inference_mode()
def check_input(model: Transformer, token_ids: Tensor) -> InputCheck:
    """Add up the parts of a recorded pass over token_ids (B, T), and compare with layer 0's input.

    Raises: ValueError if the tokens do not fit the model, as `Transformer.forward` does.
    """
    output = model(token_ids, record=True, last_only=True)
    parts, entered = output.embedding, output.layers[0].input
    again = torch.zeros_like(parts.token)
    for part in (parts.position, parts.segment, parts.token):
        if part is not None:
            again = again + part
    if model.embedding_norm is not None:
        again = model.embedding_norm(again)
    return InputCheck(parts, entered, again, (again - entered).abs().max().item())
