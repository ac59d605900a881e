"""Rotary positions beyond the trained length, with and without scaling.

Dimension letters: B batch, T tokens, N distances, D head size, L trained length.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from attention_core.model.config import TransformerConfig, llama_config
from attention_core.model.transformer import Transformer
from attention_core.positions.scaling import (
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    RopeScaling,
    YarnScaling,
    plain_frequencies,
)
from pages.learn.position.experiment.rotation import pair_scores, rotate_pair

Scalings = dict[str, RopeScaling | None]

PLAIN, LINEAR, DYNAMIC, YARN, LLAMA3 = "none", "linear", "dynamic NTK", "YaRN", "Llama 3"


def scalings(factor: float, trained_length: int) -> Scalings:
    """Scalings for `factor` times the trained length, by their names on the page."""
    return {
        PLAIN: None,
        LINEAR: LinearScaling(factor),
        DYNAMIC: DynamicScaling(factor, trained_length),
        YARN: YarnScaling(factor, trained_length),
        LLAMA3: Llama3Scaling(factor, trained_length),
    }


def trained_length(config: TransformerConfig) -> int:
    """The longest text in a rotary model's training, in tokens."""
    scaling = config.rope_scaling
    if isinstance(scaling, LinearScaling):  # its context is `factor` times as long
        return round(config.context_length / scaling.factor)
    length: int = getattr(scaling, "trained_length", config.context_length)
    return length


def frequencies(head_size: int, theta: float, n_tokens: int, scaling: RopeScaling | None) -> Tensor:
    """Radians per token of every pair, in a text of `n_tokens` tokens: (D/2,)."""
    plain = plain_frequencies(head_size, theta)
    if scaling is None:
        return plain
    return scaling.frequencies(plain, theta, torch.tensor([n_tokens])).flatten()


def turns(head_size: int, theta: float, n_tokens: int) -> Tensor:
    """Full turns of each pair within `n_tokens` tokens, without scaling: (D/2,)."""
    return plain_frequencies(head_size, theta) * n_tokens / (2 * math.pi)


def reach(
    head_size: int, theta: float, trained_length: int, n_tokens: int, scaling: RopeScaling | None
) -> Tensor:
    """Angle after `n_tokens` tokens divided by that after the trained length: (D/2,).

    Values up to 1 are angles that occurred in training.
    """
    scaled = frequencies(head_size, theta, n_tokens, scaling)
    return scaled * n_tokens / (plain_frequencies(head_size, theta) * trained_length)


def slow_scores(
    query: Tensor,
    key: Tensor,
    distances: Tensor,
    theta: float,
    trained_length: int,
    scaling: RopeScaling | None,
) -> Tensor:
    """Contribution of the slow pairs to q . k by distance: (D,), (D,), (N,) -> (N,).

    A pair is slow if it doesn't complete a full turn within the trained length. For the other
    pairs, every angle occurs in training.
    """
    slow = turns(len(query), theta, trained_length) < 1
    at_start = torch.zeros_like(distances)
    both = rotate_pair(query, key, at_start, distances, theta, scaling)
    return pair_scores(*both)[:, slow].sum(dim=-1)


def small_model(scaling: RopeScaling | None, trained_length: int, factor: int) -> Transformer:
    """A small random Llama-like model, with the same weights for every scaling."""
    config: TransformerConfig = llama_config(
        vocab_size=61,
        context_length=trained_length * factor,
        d_model=48,
        n_layers=2,
        n_heads=4,
        n_kv_heads=2,
        d_ff=80,
        rope_scaling=scaling,
    )
    model = Transformer(config).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        values = torch.randn(parameter.shape, generator=generator) * 0.3
        parameter.copy_(values + (parameter.dim() == 1) * 0.5)
    return model


def cache_difference(scaling: RopeScaling | None, trained_length: int, factor: int) -> float:
    """Largest logit difference between steps with a KV cache and a single pass.

    A random `small_model` reads a text of `factor` times the trained length: first a prompt of half
    the trained length, then token by token.
    """
    model = small_model(scaling, trained_length, factor)
    n_tokens, n_prompt = model.config.context_length, max(1, trained_length // 2)
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(model.config.vocab_size, (1, n_tokens), generator=generator)
    whole = model(tokens).logits
    cache = model.new_cache(1, n_tokens)
    steps = [model(tokens[:, :n_prompt], cache=cache).logits]
    for place in range(n_prompt, n_tokens):
        steps.append(model(tokens[:, place : place + 1], cache=cache).logits)
    return float((torch.cat(steps, dim=1) - whole).abs().max())
