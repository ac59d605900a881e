"""Rotary frequencies computed by transformers' own functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# torch and transformers are imported inside functions: importing this package has to stay cheap.
if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.positions.scaling import RopeScaling


def reference_frequencies(
    scaling: RopeScaling | None, head_size: int, theta: float, trained_length: int, n_tokens: int
) -> tuple[Tensor, float]:
    """Radians per token for each pair, (D/2,), and the attention factor, for a text of n tokens.

    Uses `ROPE_INIT_FUNCTIONS`, or Llama's own function if there is no scaling.
    """
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    table = rope_parameters(scaling) | {"rope_theta": theta}
    # if the table has the trained length, max_position_embeddings is the extended length
    longest = n_tokens if "original_max_position_embeddings" in table else trained_length
    config = LlamaConfig(head_dim=head_size, max_position_embeddings=longest, rope_parameters=table)
    if scaling is None:
        result: tuple[Tensor, float] = LlamaRotaryEmbedding.compute_default_rope_parameters(config)
        return result
    result = ROPE_INIT_FUNCTIONS[table["rope_type"]](config, seq_len=n_tokens)
    return result


def rope_parameters(scaling: RopeScaling | None) -> dict[str, Any]:
    """A scaling as options for a `config.json`.

    Raises: ValueError for a scaling that transformers doesn't support.
    """
    from attention_core.positions.scaling import (
        DynamicScaling,
        LinearScaling,
        Llama3Scaling,
        YarnScaling,
    )

    match scaling:
        case None:
            return {"rope_type": "default"}
        case LinearScaling():
            return {"rope_type": "linear", "factor": scaling.factor}
        case DynamicScaling():
            return {"rope_type": "dynamic", "factor": scaling.factor}
        case YarnScaling():
            return {
                "rope_type": "yarn",
                "factor": scaling.factor,
                "original_max_position_embeddings": scaling.trained_length,
                "beta_fast": scaling.beta_fast,
                "beta_slow": scaling.beta_slow,
                "attention_factor": scaling.attention_factor,
                "truncate": scaling.truncate,
            }
        case Llama3Scaling():
            return {
                "rope_type": "llama3",
                "factor": scaling.factor,
                "original_max_position_embeddings": scaling.trained_length,
                "low_freq_factor": scaling.low_freq_factor,
                "high_freq_factor": scaling.high_freq_factor,
            }
        case _:
            raise ValueError(f"transformers doesn't support the scaling {scaling}")
