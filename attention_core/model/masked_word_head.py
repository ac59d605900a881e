"""BERT's masked-word head: scores for every token of the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from attention_core.checks import require_finite
from attention_core.model.config import TransformerConfig
from attention_core.model.layers import ACTIVATIONS


@dataclass(frozen=True)
class MaskedWordHead:
    """A dense layer, an activation and a norm, followed by the output matrix.

    Call it with states after the last layer: (..., C) -> (..., V). The activation is the same as in
    the model's layers, and the output matrix is usually the token embedding.

    Source: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3.1, and the published
    code.
    Raises: ValueError with the shapes if the weights don't fit the model.
    """

    config: TransformerConfig
    dense: Tensor  # (C, C), as (d_in, d_out)
    dense_bias: Tensor  # (C)
    norm_weight: Tensor  # (C)
    norm_bias: Tensor  # (C)
    output: Tensor  # (V, C), rows as in the token embedding
    output_bias: Tensor  # (V)

    def __post_init__(self) -> None:
        """Check the shapes."""
        width, vocabulary = self.config.d_model, self.config.vocab_size
        expected = {
            "dense": (width, width),
            "dense_bias": (width,),
            "norm_weight": (width,),
            "norm_bias": (width,),
            "output": (vocabulary, width),
            "output_bias": (vocabulary,),
        }
        for name, shape in expected.items():
            actual = tuple(getattr(self, name).shape)
            if actual != shape:
                raise ValueError(
                    f"{name} of the masked-word head needs shape {shape}, got {actual}"
                )

    def __call__(self, hidden: Tensor) -> Tensor:
        """The logits of every token: (..., C) -> (..., V).

        Raises: NotFiniteError if they overflow.
        """
        bent = ACTIVATIONS[self.config.activation](hidden @ self.dense + self.dense_bias)
        normed = nn.functional.layer_norm(
            bent, (self.config.d_model,), self.norm_weight, self.norm_bias, self.config.norm_eps
        )
        logits = normed @ self.output.t() + self.output_bias
        require_finite("logits", logits, first=None)
        return logits
