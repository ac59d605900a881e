"""Multi-head attention in eleven steps that keep every intermediate tensor.

`multi_head_steps` repeats `MultiHeadAttention.forward` step by step; `layer_steps` reads the steps
from the record of a `Transformer`'s layer.
Source: the lecture on weight splits, its steps 1 to 11.
Dimension letters: B batch, T tokens, H heads, H_kv key/value heads, D head size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from attention_core import attention as door
from attention_core.attend import attention_weights, mask_scores
from attention_core.heads import merge_heads
from attention_core.ladder import MultiHeadAttention
from attention_core.model.block import LayerRecord
from attention_core.model.transformer import Transformer
from pages.learn.shapes.experiment.assembly import Sizes, assemble
from pages.learn.shapes.experiment.named_tensors import ShapeStep


def random_embeddings(sentences: Sequence[Sequence[str]], d_in: int, seed: int) -> Tensor:
    """Draw one random vector per distinct word, so that a repeated word gets the same vector.

    Shape: (B, T, d_in), standard normal.
    Raises: ValueError for an empty sentence, or for sentences of different lengths.
    """
    lengths = [len(sentence) for sentence in sentences]
    if not lengths or not all(lengths):
        raise ValueError(f"every sentence needs at least one word, got lengths {lengths}")
    if len(set(lengths)) > 1:
        raise ValueError(
            f"the sentences have {' and '.join(map(str, lengths))} tokens, but a batch is a single "
            "tensor, so all its sentences need the same length"
        )
    words = list(dict.fromkeys(word for sentence in sentences for word in sentence))
    table = torch.randn(len(words), d_in, generator=torch.Generator().manual_seed(seed))
    return torch.stack([table[[words.index(word) for word in sentence]] for sentence in sentences])


def multi_head_steps(attention: MultiHeadAttention, x: Tensor) -> tuple[ShapeStep, ...]:
    """Compute the eleven steps of `attention(x)`; the last tensor equals `forward` bit for bit.

    In training mode with dropout, that needs the same state of PyTorch's generator.
    Shapes: x (B, T, d_in) -> output (B, T, d_out).
    Raises: ValueError if T exceeds the context length.
    """
    n_heads, head_dim = attention.num_heads, attention.head_dim
    d_out = n_heads * head_dim
    mask = attention.mask(x)
    dropout = attention.dropout if attention.training else 0.0

    batch_size, n_tokens, _ = x.shape  # [sizes] 1
    columns = torch.arange(d_out).view(n_heads, head_dim)  # [columns] 2
    linears = attention.W_query, attention.W_key, attention.W_value, attention.out_proj  # [linears]
    # [matrices]
    matrices = [linear.weight.T for linear in linears]  # 3: nn.Linear stores them transposed
    flat = (attention.W_query(x), attention.W_key(x), attention.W_value(x))  # [flat] 4
    # [unrolled]
    unrolled = [tensor.view(batch_size, n_tokens, n_heads, head_dim) for tensor in flat]  # 5
    queries, keys, values = (tensor.transpose(1, 2) for tensor in unrolled)  # [grouped] 6
    scores = queries @ keys.transpose(2, 3)  # [scores] 7
    masked = scores if mask is None else mask_scores(scores, mask)  # [masked] 8: mask,
    scaled = masked * (1.0 / math.sqrt(head_dim))  # [scaled] scale,
    softmaxed = attention_weights(scaled)  # [softmax] softmax,
    # [weights]
    weights = nn.functional.dropout(softmaxed, dropout) if dropout else softmaxed  # dropout
    context = weights @ values  # [context] 9
    by_token = context.transpose(1, 2)  # [by token] 10
    merged = by_token.contiguous().view(batch_size, n_tokens, d_out)  # [merged] 11
    output = attention.out_proj(merged)  # [output] 11, the projection

    weighing = {"scaled": scaled, "weights": softmaxed}
    weighing = weighing if mask is None else {"masked": masked, **weighing}
    return assemble(
        Sizes(n_heads, n_heads, head_dim, dropout),
        x=x,
        columns=columns,
        matrices=matrices,
        biases=[linear.bias for linear in linears],
        projected=(flat, unrolled, (queries, keys, values)),
        scores=scores,
        weighing={**weighing, "after dropout": weights} if dropout else weighing,
        contexts=(context, by_token, merged),
        output=output,
    )


def layer_steps(model: Transformer, layer: LayerRecord, number: int) -> tuple[ShapeStep, ...]:
    """Read the eleven steps of one layer's attention from the record of a forward pass.

    With fewer key/value heads than query heads (grouped-query attention), the keys and values are
    narrower and shared by several query heads, so they get separate columns in the numbering. With
    rotary positions, step 6 also rotates the queries and keys.

    Arguments: `layer` is the record of the model's layer `number`, from a pass without a cache.
    Raises: ValueError if the model doesn't have that layer, or if it uses latent attention, whose
    steps are different.
    """
    if not 0 <= number < len(model.blocks):
        raise ValueError(f"layer {number} is not one of 0 to {len(model.blocks) - 1}")
    attention = model.get_submodule(f"blocks.{number}.attention")
    if not isinstance(attention, door.MultiHeadAttention):
        raise ValueError("the eleven steps cover multi-head attention, not latent attention")
    config, record = model.config, layer.attention
    assert record.projected is not None  # every layer with this attention records them
    assert record.output is not None
    head_counts = (config.n_heads, config.kv_heads, config.kv_heads)
    widths = config.qkv_widths

    x = layer.attention_reads  # [input] 1
    columns = torch.arange(widths[0]).view(config.n_heads, config.d_head)  # [columns] 2
    side_by_side = attention.qkv.matrix.split(widths, dim=1)  # [side by side]
    matrices = [*side_by_side, attention.out.matrix]  # [matrices] 3
    biases = [None] * 3 if attention.qkv.bias is None else attention.qkv.bias.split(widths)
    flat = record.projected.split(widths, dim=-1)  # 4
    unrolled = [
        tensor.unflatten(-1, (heads, config.d_head))
        for tensor, heads in zip(flat, head_counts, strict=True)
    ]  # 5
    grouped = [tensor.transpose(1, 2) for tensor in unrolled]  # 6
    turned, rotation = {}, None
    if config.positions == "rotary":
        turned = {"queries, rotated": record.q, "keys, rotated": record.k}  # 6: positions
        positions = torch.arange(x.shape[1], device=x.device)
        rotation = model.new_pass(x, positions).rotation
    weighing = {"scaled": record.scaled_scores, "weights": record.weights}  # 8
    if config.causal:
        weighing = {"masked": record.masked_scores, **weighing}
    by_token = record.context.transpose(1, 2)  # 10
    merged = merge_heads(record.context)  # 11

    return assemble(
        Sizes(config.n_heads, config.kv_heads, config.d_head),
        x=x,
        columns=columns,
        matrices=matrices,
        biases=[*biases, attention.out.bias],
        projected=(flat, unrolled, grouped),
        rotated=turned,
        rotation=rotation,
        scores=record.scores,  # 7
        weighing=weighing,
        contexts=(record.context, by_token, merged),  # 9
        output=record.output,  # 11, the projection
    )
