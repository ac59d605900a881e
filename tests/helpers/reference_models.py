"""Small random transformers models to compare with."""

from typing import Any

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

TOLERANCE = {"atol": 1e-5, "rtol": 0.0}
LLAMA = LlamaConfig().to_dict()
EAGER = {"attn_implementation": "eager"}  # the fused kernel returns no attention weights


def gpt2() -> Any:
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=97, n_positions=31, n_embd=24, n_layer=3, n_head=4, n_inner=52, **EAGER
        )
    )


def llama(**changes: Any) -> Any:
    sizes = {
        "vocab_size": 89, "max_position_embeddings": 37, "hidden_size": 30,
        "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2,
        "head_dim": 8, "intermediate_size": 44, "rms_norm_eps": 1e-4,
        "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
    }  # fmt: skip
    return LlamaForCausalLM(LlamaConfig(**(sizes | changes), **EAGER))


def enlarge(model: Any) -> Any:
    """Set weights far from their tiny initial values, so attention is far from uniform."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn_like(parameter) * 0.35
            parameter.copy_(noise + (0.6 if parameter.dim() == 1 else 0.0))
    model.tie_weights()
    return model.eval()


def ids(model: Any, batch: int = 3, length: int = 17) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(model.config.vocab_size, (batch, length), generator=generator)
