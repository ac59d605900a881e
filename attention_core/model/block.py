"""One layer of a model: attention and a feed-forward network, each added to its input.

Dimension letters: B batch, T new tokens, C width, F width inside the feed-forward network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor, nn

from attention_core.attend import AttentionRecord
from attention_core.model.attention import Attention
from attention_core.model.config import TransformerConfig
from attention_core.model.forward_pass import Pass
from attention_core.model.latent import LatentAttention
from attention_core.model.layers import FeedForward, make_norm


@dataclass(frozen=True)
class LayerRecord:
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
        self.attention: Attention | LatentAttention = (
            Attention(config, layer) if config.latent is None else LatentAttention(config, layer)
        )
        self.mlp_norm = make_norm(config)
        self.mlp = FeedForward(config)

    def forward(self, x: Tensor, forward_pass: Pass) -> LayerRecord:
        """Run the layer on x (B, T, C); the new residual stream is the record's `output`."""
        run = self._run_pre_norm if self.pre_norm else self._run_post_norm
        return run(x, forward_pass)

    def _run_pre_norm(self, x: Tensor, forward_pass: Pass) -> LayerRecord:
        attention_reads = self.attention_norm(x)
        attention = self.attention(attention_reads, forward_pass)
        attention_sum = x + attention.output
        mlp_reads = self.mlp_norm(attention_sum)
        mlp_output, hidden = self.mlp.output_and_hidden(mlp_reads)
        mlp_sum = attention_sum + mlp_output
        return LayerRecord(
            x,
            attention_reads,
            attention,
            attention_sum,
            mlp_reads,
            hidden,
            mlp_output,
            mlp_sum,
            output=mlp_sum,
        )

    def _run_post_norm(self, x: Tensor, forward_pass: Pass) -> LayerRecord:
        attention = self.attention(x, forward_pass)
        attention_sum = x + attention.output
        mlp_reads = self.attention_norm(attention_sum)
        mlp_output, hidden = self.mlp.output_and_hidden(mlp_reads)
        mlp_sum = mlp_reads + mlp_output
        output = self.mlp_norm(mlp_sum)
        return LayerRecord(
            x, x, attention, attention_sum, mlp_reads, hidden, mlp_output, mlp_sum, output
        )
