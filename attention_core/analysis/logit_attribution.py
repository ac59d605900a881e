"""Direct logit attribution: how much each part of a model adds to a token's logit.

The final vector is the sum of the outputs of all parts, and a logit is its dot product with a
column of the output matrix, after the last norm. If we freeze the scale of each norm at its value
in this pass, all of that is linear, so every part has a share and the shares sum to the logit.
Post-norm layers (BERT) rescale everything that was added before. In a masked-word head, the
activation f is frozen too, as a gate f(u) / u.

Sources: Elhage et al. 2021, https://transformer-circuits.pub/2021/framework/index.html; Wang et al.
2022, https://arxiv.org/abs/2211.00593, section 3.
Dimension letters: N chosen tokens, L layers, H query heads, S keys, D head size, C width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attention_core.analysis.projected_values import Heads
from attention_core.display import ShapeReprMixin
from attention_core.model.block import LayerRecord
from attention_core.model.layers import ACTIVATIONS, RMSNorm
from attention_core.model.masked_word_head import MaskedWordHead
from attention_core.model.transformer import Transformer


@dataclass(frozen=True, repr=False)
class LogitAttribution(ShapeReprMixin):
    """The shares of all parts in N logits, float64 on the CPU; they sum to `logits`.

    keys: (N, L, H, S), each head's share by key.
    attention_bias: (N, L), the bias of each layer's output projection.
    mlp: (N, L), the feed-forward networks, including their biases.
    embedding: (N), the input of layer 0.
    norm_bias: (N), the biases of all norms after the input of layer 0.
    output_bias: (N), the biases of a masked-word head.
    """

    keys: Tensor
    attention_bias: Tensor
    mlp: Tensor
    embedding: Tensor
    norm_bias: Tensor
    output_bias: Tensor

    @property
    def heads(self) -> Tensor:
        """The share of every head: (N, L, H)."""
        return self.keys.sum(dim=-1)

    @property
    def logits(self) -> Tensor:
        """The logits, which are the sum of all shares: (N)."""
        by_layer = self.heads.sum(dim=-1) + self.attention_bias + self.mlp
        return by_layer.sum(dim=-1) + self.embedding + self.norm_bias + self.output_bias


def logit_attribution(
    model: Transformer,
    layers: Sequence[LayerRecord],
    position: int,
    token_ids: Sequence[int],
    *,
    off: Heads = (),
    head: MaskedWordHead | None = None,
) -> LogitAttribution:
    """Attribute the logits of some tokens at one position of a recorded text.

    To attribute the difference between two logits, subtract their shares.

    layers: from a pass with `record=True` and a batch of one text. off: heads whose contexts were
    replaced by zeros. head: the masked-word head, for models without an output matrix.
    Raises: ValueError for a position or id that doesn't exist, or if there's neither an output
    matrix nor a `head`.
    """
    n_tokens, vocabulary = layers[0].input.shape[1], model.config.vocab_size
    if not 0 <= position < n_tokens:
        raise ValueError(f"position must be 0 to {n_tokens - 1}, got {position}")
    if wrong := [token for token in token_ids if not 0 <= token < vocabulary]:
        raise ValueError(f"token ids must be 0 to {vocabulary - 1}, got {wrong}")
    last = layers[-1].output[0, position].double()
    # `along` (N, C): directions whose dot products with the vector are the logits
    along, norm_bias, output_bias = _output_directions(model, last, list(token_ids), head)
    keys, attention_bias, mlp = [], [], []
    for number in reversed(range(len(layers))):
        record, block = layers[number], model.block(number)
        if not block.pre_norm:
            along, bias = _through_norm(block.mlp_norm, record.mlp_sum[0, position], along)
            norm_bias = norm_bias + bias
        mlp.append(along @ record.mlp_output[0, position].double())
        if not block.pre_norm:
            along, bias = _through_norm(
                block.attention_norm, record.attention_sum[0, position], along
            )
            norm_bias = norm_bias + bias
        keys.append(_by_key(model, record, number, position, along, off))
        out_bias = block.attention.out.bias
        shares = along.new_zeros(len(along)) if out_bias is None else along @ out_bias.double()
        attention_bias.append(shares)
    first = layers[0].input[0, position].double()
    by_layer = (torch.stack(parts[::-1], dim=1) for parts in (keys, attention_bias, mlp))
    every = (*by_layer, along @ first, norm_bias, output_bias)
    return LogitAttribution(*(share.cpu() for share in every))


def _output_directions(
    model: Transformer, last: Tensor, token_ids: list[int], head: MaskedWordHead | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Directions (N, C) that map the last vector to logits, and two biases (N), (N)."""
    nothing = last.new_zeros(len(token_ids))
    if head is not None:
        return _through_head(head, last, token_ids)
    if model.unembedding is None:
        raise ValueError("this model has no output matrix, so there are no logits to attribute")
    along = model.unembedding[:, token_ids].t().double()
    if model.final_norm is None:
        return along, nothing, nothing
    along, bias = _through_norm(model.final_norm, last, along)
    return along, bias, nothing


def _through_head(
    head: MaskedWordHead, last: Tensor, token_ids: list[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """`_output_directions` for a masked-word head: a dense layer, a frozen activation, a norm."""
    dense, bias = head.dense.double(), head.dense_bias.double()
    before = last @ dense + bias
    after = ACTIVATIONS[head.config.activation](before)
    output = head.output[token_ids].double()
    along = _through_layer_norm(after, output * head.norm_weight.double(), head.config.norm_eps)
    norm_bias = output @ head.norm_bias.double()
    along = along * torch.where(before == 0, 0.0, after / before)
    output_bias = head.output_bias[token_ids].double() + along @ bias
    return along @ dense.t(), norm_bias, output_bias


def _through_norm(norm: nn.Module, x: Tensor, along: Tensor) -> tuple[Tensor, Tensor]:
    """Directions (N, C) before a norm of x (C) with frozen scale, and its bias (N)."""
    if isinstance(norm, RMSNorm):
        scale = torch.rsqrt(x.double().square().mean() + norm.eps)
        return along * norm.weight.double() * scale, along.new_zeros(len(along))
    assert isinstance(norm, nn.LayerNorm)
    before = _through_layer_norm(x.double(), along * norm.weight.double(), norm.eps)
    return before, along @ norm.bias.double()


def _through_layer_norm(x: Tensor, along: Tensor, eps: float) -> Tensor:
    """Directions (N, C) before the centering and frozen scale of a LayerNorm of x (C)."""
    return (along - along.mean(dim=-1, keepdim=True)) * torch.rsqrt(x.var(correction=0) + eps)


def _by_key(
    model: Transformer, record: LayerRecord, layer: int, position: int, along: Tensor, off: Heads
) -> Tensor:
    """The shares of a layer's heads by key: (N, H, S)."""
    v = record.attention.v[0].double()  # (H_kv, S, D)
    weights = record.attention.weights[0, :, position].double()  # (H, S)
    read = model.out_weight(layer).double() @ along.t()  # (H*D, C) @ (C, N) -> (H*D, N)
    read = read.view(len(v), -1, v.shape[-1], len(along))  # (H_kv, G, D, N)
    shares = (v[:, None] @ read).flatten(0, 1).permute(2, 0, 1) * weights  # (N, H, S)
    for at, number in off:
        if at == layer:
            shares[:, number] = 0.0
    return shares
