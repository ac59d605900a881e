"""Attention on the same tokens in two orders, with and without positions.

Dimension letters: B batch, T tokens, C width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attention_core.analysis.permutation import EquivarianceCheck, check_equivariance
from attention_core.model.transformer import Transformer


def compare_orders(
    model: Transformer, token_ids: Tensor, order: Sequence[int], *, positions: bool
) -> EquivarianceCheck:
    """Outputs (T, C) of the first layer's attention for tokens (T,), in both orders.

    There is no causal mask, because a mask would reveal the order. With `positions` the layer uses
    the model's own positions, learned or rotary.
    `output_permuted` contains the outputs in the original order, rearranged into the new one;
    `input_permuted` contains the outputs for the reordered tokens.
    Raises: ValueError if `order` isn't a permutation.
    """
    block = model.block(0)
    places = torch.arange(len(token_ids), device=token_ids.device)

    def attention(ids: Tensor) -> Tensor:  # (B, T) -> (B, T, C)
        x = model.embed(ids, places if positions else None).layer_input
        rotation = model.new_pass(x, places).rotation if positions else None  # [rotation]
        reads = block.attention_norm(x) if block.pre_norm else x
        output = block.attention(reads, positions=rotation)  # [output]
        assert isinstance(output, Tensor)
        return output

    return check_equivariance(attention, token_ids, order)
