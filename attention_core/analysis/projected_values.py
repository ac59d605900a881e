"""Value vectors after the output projection: what heads pass between tokens.

Dimension letters: H query heads, H_kv key/value heads, S keys, D head size, C width.
"""

from __future__ import annotations

from collections.abc import Collection

from torch import Tensor

from attention_core.model.block import LayerRecord
from attention_core.model.transformer import Transformer

Heads = Collection[tuple[int, int]]  # (layer, head)


def projected_values(
    model: Transformer, record: LayerRecord, layer: int, off: Heads = ()
) -> Tensor:
    """v_j W_O,h for every key and head of a layer: (S, H, C), float32.

    A head passes this vector, times its attention weight, from token j to a query. It's zero for
    heads in `off`.
    record: for a single text, without cached tokens.
    Raises: ValueError for a record of several texts, or with cached tokens.
    """
    v = record.attention.v
    n_kv_heads, n_keys, size = v.shape[1:]
    if len(v) != 1:
        raise ValueError(f"the record must be of one text, got a batch of {len(v)}")
    if (n_queries := record.input.shape[1]) != n_keys:
        raise ValueError(f"the record must be of a whole text, got {n_queries} of {n_keys} tokens")
    # (H*D, C) -> (H_kv, G, D, C): query head h reads key/value head h // G
    by_head = model.out_weight(layer).float().view(n_kv_heads, -1, size, model.config.d_model)
    # (H_kv, 1, S, D) @ (H_kv, G, D, C) -> (H_kv, G, S, C) -> (H, S, C) -> (S, H, C)
    values = (v[0, :, None].float() @ by_head).flatten(0, 1).transpose(0, 1).contiguous()
    for at, head in off:
        if at == layer:
            values[:, head] = 0.0
    return values
