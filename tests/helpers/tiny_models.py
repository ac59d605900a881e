"""Small random core models, all sizes distinct."""

import torch

from attention_core import Transformer, TransformerConfig, bert_config, gpt2_config, llama_config

TINY: dict[str, TransformerConfig] = {
    "gpt2": gpt2_config(
        vocab_size=83, context_length=41, d_model=24, n_layers=3, n_heads=4, d_ff=52
    ),
    "llama": llama_config(
        vocab_size=89, context_length=43, d_model=30, n_layers=2, n_heads=6, n_kv_heads=2,
        head_size=8, d_ff=44, tied=False, attention_bias=True,
    ),
    "llama-tied": llama_config(
        vocab_size=89, context_length=43, d_model=36, n_layers=2, n_heads=3, n_kv_heads=1, d_ff=44
    ),
    "bert": bert_config(
        vocab_size=79, context_length=37, d_model=20, n_layers=3, n_heads=5, d_ff=28
    ),
}  # fmt: skip


def build(name: str, seed: int = 0) -> Transformer:
    """Return a tiny model with weights large enough that attention is far from uniform."""
    torch.manual_seed(seed)
    model = Transformer(TINY[name]).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.copy_(torch.randn_like(parameter) * 0.3 + (parameter.dim() == 1) * 0.5)
    return model
