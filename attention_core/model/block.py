"""One layer of a model: attention and a feed-forward network, each added to its input.

Dimension letters: B batch, T new tokens, C width, F width inside the feed-forward network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor, nn

from attention_core.attend import AttentionRecord
from attention_core.attention import MultiHeadAttention
from attention_core.display import ShowsShapes
from attention_core.model.config import TransformerConfig
from attention_core.model.forward_pass import NOTHING, Pass
from attention_core.model.latent import LatentAttention
from attention_core.model.layers import FeedForward, make_norm


@dataclass(frozen=True, repr=False)
class LayerRecord(ShowsShapes):
    """Every tensor between the input and the output of one layer, in the order of the computation.

    In a pre-norm layer attention reads the normed input, the feed-forward network (MLP) reads the
    normed `attention_sum`, and `output` is `mlp_sum`. In a post-norm layer attention reads the
    input itself, the MLP reads the normed `attention_sum`, and `output` is the normed `mlp_sum`.

    A tensor that a torch forward hook returns for a module replaces that module's output here too.
    A forward pre-hook replaces what one module reads, and leaves the fields before it unchanged.
    """

    input: Tensor  # (B, T, C)
    attention_reads: Tensor  # (B, T, C)
    attention: AttentionRecord  # its `output` is (B, T, C)
    attention_sum: Tensor  # (B, T, C)  input + attention.output
    mlp_reads: Tensor  # (B, T, C)  the norm of attention_sum
    mlp_hidden: Tensor  # (B, T, F)  after the activation
    mlp_output: Tensor  # (B, T, C)
    mlp_sum: Tensor  # (B, T, C)  pre-norm: attention_sum + mlp_output; post-norm: mlp_reads + it
    output: Tensor  # (B, T, C)

    def apart_from_cache(self) -> LayerRecord:
        """The same with copies of the keys and values.

        Those of a pass with a cache lie in the memory of the cache, which a later pass changes.
        """
        k, v = self.attention.k.clone(), self.attention.v.clone()
        return replace(self, attention=replace(self.attention, k=k, v=v))


class Block(nn.Module):
    """Attention and a feed-forward network (MLP), each added to the residual stream and normed.

    "pre" norms what a part reads (GPT-2, Llama); "post" norms the sum (the 2017 encoder, BERT).
    """

    def __init__(self, config: TransformerConfig, layer: int) -> None:
        super().__init__()
        self.pre_norm = config.norm_order == "pre"
        self.attention_norm = make_norm(config)
        self.attention = make_attention(config, layer)
        self.mlp_norm = make_norm(config)
        self.mlp = FeedForward(config)

    def forward(
        self, x: Tensor, forward_pass: Pass = NOTHING, records: list[LayerRecord] | None = None
    ) -> Tensor:
        """Run the layer on the residual stream: (B, T, C) -> (B, T, C).

        records: a list that gets the record of this call.
        """
        layer, edited = self.attention.layer, forward_pass.edited
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
            assert watch is not None  # of every recorded call
            assert watch.record is not None
            record = replace(watch.record, output=attention)
            steps = (x, reads, record, attention_sum, mlp_reads, hidden[0], mlp_output, mlp_sum)
            records.append(LayerRecord(*steps, output))
        return output

    def record(self, x: Tensor, forward_pass: Pass = NOTHING) -> LayerRecord:
        """The same call with every tensor on the way; `output` is what `forward` returns."""
        records: list[LayerRecord] = []
        output = self(x, forward_pass, records)
        return replace(records[0], output=output)  # a hook on the module may have replaced it


def make_attention(config: TransformerConfig, layer: int) -> MultiHeadAttention | LatentAttention:
    """The attention of a model's layer. The mask and the rotation come with every pass."""
    bias, sizes = config.attention_bias, (config.d_model, config.n_heads)
    if config.latent is not None:
        return LatentAttention(*sizes, config.latent, bias=bias, layer=layer)
    n_kv_heads, head_size = config.kv_heads, config.d_head
    return MultiHeadAttention(
        *sizes, n_kv_heads=n_kv_heads, head_size=head_size, bias=bias, layer=layer
    )
