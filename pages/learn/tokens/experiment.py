"""Split the input of layer 0 into its parts, and check that they add up to it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.model.output import EmbeddingParts
from attention_core.model.transformer import Transformer


@dataclass(frozen=True)
class InputCheck:
    """The parts of the input embedding, compared with the actual input of layer 0.

    parts: recorded in the forward pass. layer_input: (B, T, C), the actual input of layer 0.
    resummed: (B, T, C), the parts added up in a different order, then normalized. difference: the
    largest absolute difference of `resummed` and `layer_input`, which should be rounding only.
    """

    parts: EmbeddingParts
    layer_input: Tensor
    resummed: Tensor
    difference: float


@torch.inference_mode()
def check_input(model: Transformer, token_ids: Tensor) -> InputCheck:
    """Add up the recorded parts for token_ids (B, T), and compare the sum with layer 0's input.

    Raises: ValueError if the tokens don't fit the model (see `Transformer.forward`).
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
