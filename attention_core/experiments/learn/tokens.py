"""What enters layer 0, taken apart and put together again."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.model.transformer import EmbeddingParts, Transformer


@dataclass(frozen=True)
class InputCheck:
    """The parts of the input embedding beside the tensor that really entered layer 0.

    parts: as `Transformer.embed` adds them up. entered: (B, T, C), kept by a whole forward pass.
    again: (B, T, C), the parts added up in another order, then normed. difference: the largest
    absolute difference of `again` from `entered`; rounding, if all is well.
    """

    parts: EmbeddingParts
    entered: Tensor
    again: Tensor
    difference: float


@torch.inference_mode()
def check_input(model: Transformer, token_ids: Tensor) -> InputCheck:
    """Embed token_ids (B, T) part by part, and compare with the input of layer 0.

    Raises: ValueError if the tokens do not fit the model, as `Transformer.forward` does.
    """
    entered = model(token_ids, record=True, last_only=True).hidden_states[0]
    positions = torch.arange(token_ids.shape[1], device=token_ids.device)
    parts = model.embed(token_ids, positions)
    again = torch.zeros_like(parts.token)
    for part in (parts.position, parts.segment, parts.token):
        if part is not None:
            again = again + part
    if model.embedding_norm is not None:
        again = model.embedding_norm(again)
    return InputCheck(parts, entered, again, (again - entered).abs().max().item())
