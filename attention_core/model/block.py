"""One layer of a model: attention and a feed-forward network, with residuals.

Dimension letters: B batch, T new tokens, C width, F width inside the feed-forward network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor, nn

from attention_core.attend import AttentionRecord
from attention_core.attention import MultiHeadAttention
from attention_core.display import ShapeReprMixin
from attention_core.model.config import TransformerConfig
from attention_core.model.latent import LatentAttention
from attention_core.model.layers import FeedForward, make_norm
from attention_core.model.pass_context import NO_CONTEXT, PassContext


@dataclass(frozen=True, repr=False)
class LayerRecord(ShapeReprMixin):
    """All tensors of one layer, from input to output, in the order they're computed.

    In a pre-norm layer, attention reads the normalized input, the feed-forward network (MLP) reads
    the normalized `attention_sum`, and `output` is `mlp_sum`. In a post-norm layer, attention reads
    the input directly, the MLP reads the normalized `attention_sum`, and `output` is the normalized
    `mlp_sum`.

    If a torch forward hook replaces a module's output, the new tensor appears here too. A forward
    pre-hook changes only what that module reads, so the fields before it stay the same.
    """

    input: Tensor  # (B, T, C)
    attention_reads: Tensor  # (B, T, C)
    attention: AttentionRecord  # with `output` (B, T, C)
    attention_sum: Tensor  # (B, T, C)  input + attention.output
    mlp_reads: Tensor  # (B, T, C)  normalized attention_sum
    mlp_hidden: Tensor  # (B, T, F)  after the activation
    mlp_output: Tensor  # (B, T, C)
    mlp_sum: Tensor  # (B, T, C)  mlp_output + attention_sum (pre-norm) or mlp_reads (post-norm)
    output: Tensor  # (B, T, C)

    def detached_from_cache(self) -> LayerRecord:
        """A copy of the record whose keys and values don't share memory with a cache.

        With a cache, they're views of its buffers, which later passes overwrite.
        """
        k, v = self.attention.k.clone(), self.attention.v.clone()
        return replace(self, attention=replace(self.attention, k=k, v=v))


class Block(nn.Module):
    """Attention and a feed-forward network (MLP), each with a residual and a norm.

    Pre-norm layers normalize the input of each part (GPT-2, Llama). Post-norm layers normalize the
    sum (the 2017 Transformer, BERT).
    """

    def __init__(self, config: TransformerConfig, layer: int) -> None:
        super().__init__()
        self.pre_norm = config.norm_order == "pre"
        self.attention_norm = make_norm(config)
        self.attention = make_attention(config, layer)
        self.mlp_norm = make_norm(config)
        self.mlp = FeedForward(config)

    def forward(
        self,
        x: Tensor,
        forward_pass: PassContext = NO_CONTEXT,
        records: list[LayerRecord] | None = None,
    ) -> Tensor:
        """Run the layer on the residual stream: (B, T, C) -> (B, T, C).

        records: a list to which the record of this call is appended.
        """
        layer, edited = self.attention.layer, forward_pass.apply_edit
        x = edited("input", layer, x)
        reads = self.attention_norm(x) if self.pre_norm else x  # [normed input]
        watch = forward_pass.watch(layer, record=records is not None)
        attention = self.attention(
            reads,
            mask=forward_pass.mask,
            positions=forward_pass.rotation,
            cache=forward_pass.cache,
            watch=watch,
        )
        attention = edited("attention_output", layer, attention)
        attention_sum = x + attention  # [attention sum]
        mlp_norm = self.mlp_norm if self.pre_norm else self.attention_norm
        mlp_reads = mlp_norm(attention_sum)  # [normed sum]
        hidden: list[Tensor] = []
        mlp_output = self.mlp(
            mlp_reads,
            edit=partial(edited, "mlp_hidden", layer),
            activations=None if records is None else hidden,
        )
        mlp_output = edited("mlp_output", layer, mlp_output)
        mlp_sum = (attention_sum if self.pre_norm else mlp_reads) + mlp_output  # [mlp sum]
        output = mlp_sum if self.pre_norm else self.mlp_norm(mlp_sum)  # [normed output]
        output = edited("output", layer, output)
        if records is not None:
            assert watch is not None  # every recorded call has a watch
            assert watch.record is not None
            record = replace(watch.record, output=attention)
            steps = (x, reads, record, attention_sum, mlp_reads, hidden[0], mlp_output, mlp_sum)
            records.append(LayerRecord(*steps, output))
        return output

    def record(self, x: Tensor, forward_pass: PassContext = NO_CONTEXT) -> LayerRecord:
        """Run `forward` and return every intermediate; `output` is the return value."""
        records: list[LayerRecord] = []
        output = self(x, forward_pass, records)
        return replace(records[0], output=output)  # a forward hook may have replaced it


def make_attention(config: TransformerConfig, layer: int) -> MultiHeadAttention | LatentAttention:
    """The attention module of a layer; each pass supplies the mask and the rotation."""
    bias, sizes = config.attention_bias, (config.d_model, config.n_heads)
    if config.latent is not None:
        return LatentAttention(*sizes, config.latent, bias=bias, layer=layer)
    n_kv_heads, head_size = config.kv_heads, config.d_head
    return MultiHeadAttention(
        *sizes, n_kv_heads=n_kv_heads, head_size=head_size, bias=bias, layer=layer
    )
