"""What attention makes of the same tokens in another order, without positions and with them.

Dimension letters: B batch, T tokens, C width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attention_core.analysis.token_order import Exchange, exchange
from attention_core.model.transformer import Transformer


def in_two_orders(
    model: Transformer, token_ids: Tensor, order: Sequence[int], *, positions: bool
) -> Exchange:
    """The outputs (T, C) of the first layer's attention for tokens (T,), in both orders.

    Every token sees every other one: a causal mask would tell the order by itself. With `positions`
    the layer is given those of its model, learned or rotary.
    `function_first` holds the outputs of the tokens as they stand, then put into the new order;
    `order_first` those of the reordered tokens.
    Raises: ValueError if `order` does not hold every place once.
    """
    block = model.block(0)
    places = torch.arange(len(token_ids), device=token_ids.device)

    def attention(ids: Tensor) -> Tensor:  # (B, T) -> (B, T, C)
        x = model.embed(ids, places if positions else None).entering
        rotation = model.new_pass(x, places).rotation if positions else None  # [rotation]
        reads = block.attention_norm(x) if block.pre_norm else x
        output = block.attention(reads, positions=rotation)  # [output]
        assert isinstance(output, Tensor)
        return output

    return exchange(attention, token_ids, order)
