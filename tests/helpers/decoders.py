"""Small models of every kind, for tests of recorded or compiled steps."""

import dataclasses

import pytest
import torch

from attention_core import Sampling, Transformer, gpt2_config, llama_config
from attention_core.model.config import LatentConfig, TransformerConfig
from attention_core.positions.scaling import DynamicScaling
from attention_core.speed.compilation import NoCompilerError, check_compiler

GPT2 = gpt2_config(d_model=20, n_layers=3, n_heads=4, vocab_size=61, context_length=30, d_ff=28)
LLAMA = llama_config(
    vocab_size=67, context_length=30, d_model=24, n_layers=2, n_heads=6, n_kv_heads=2, d_ff=44
)
LATENT = LatentConfig(kv_rank=10, nope_head_size=6, rope_head_size=4, v_head_size=7)
CONFIGS = {
    "learned positions": GPT2,
    "grouped, rotary": LLAMA,
    "a window": dataclasses.replace(GPT2, window=4),
    "a scaling that looks at the length": dataclasses.replace(
        LLAMA, rope_scaling=DynamicScaling(2.0, trained_length=9)
    ),
    "latent, expanded": dataclasses.replace(LLAMA, n_kv_heads=None, latent=LATENT),
    "latent, absorbed": dataclasses.replace(
        LLAMA, n_kv_heads=None, latent=dataclasses.replace(LATENT, absorbed=True)
    ),
}
PROMPT = (7, 3, 60, 12, 5)
DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
    ),
]
SAMPLINGS = {
    "greedy": Sampling(),
    "warm": Sampling(1.3, seed=4),
    "top-k and top-p": Sampling(0.9, top_k=9, top_p=0.8, seed=11),
}


def has_compiler() -> bool:
    """Return whether this machine can compile a step."""
    try:
        check_compiler(torch.device("cpu"))
    except NoCompilerError:
        return False
    return True


def random_model(config: TransformerConfig, device: str = "cpu") -> Transformer:
    """Return a model with widely spread weights, so that it generates several distinct tokens."""
    torch.manual_seed(5)
    model = Transformer(config)
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.4)
    return model.requires_grad_(False).eval().to(device)
