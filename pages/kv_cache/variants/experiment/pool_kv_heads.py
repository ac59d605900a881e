"""Fewer key/value heads from a trained model: the mean of each group's heads.

Source: Ainslie et al. 2023, https://arxiv.org/abs/2305.13245, section 2.1. The paper then continues
training the pooled model. Here it isn't trained, which shows what pooling alone loses.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from attention_core.attention import MultiHeadAttention
from attention_core.model.transformer import Transformer
from attention_core.model.variants import with_weights


def mean_pooled_kv_heads(
    model: Transformer, n_kv_heads: int, *, share: bool = False
) -> Transformer:
    """A new model with G key/value heads, each the mean of a group of heads.

    Key/value head g is the mean of the H_kv / G consecutive heads from g * (H_kv / G) on, and the
    query heads of those heads read the mean. All other weights are copied or, with `share`, shared
    with the model to save memory.
    With as many groups as heads, nothing changes; with one group, the result is multi-query.

    Raises: ValueError if the groups don't divide the key/value heads evenly, or the model has
    latent attention, which has no key/value heads.
    """
    config = model.config
    if config.latent is not None:
        raise ValueError("latent attention caches no key/value heads that could be pooled")
    if n_kv_heads < 1 or config.kv_heads % n_kv_heads:
        raise ValueError(
            f"{config.kv_heads} key/value heads cannot be pooled evenly into {n_kv_heads}"
        )
    state = model.state_dict()
    weights = {name: weight if share else weight.clone() for name, weight in state.items()}
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            for kind, _ in module.qkv.named_parameters():
                key = f"{name}.qkv.{kind}"
                weights[key] = _pooled_rows(weights[key], module, n_kv_heads)
    return with_weights(replace(config, n_kv_heads=n_kv_heads), weights, like=model)


def mean_of_groups(heads: Tensor, n_groups: int, *, dim: int) -> Tensor:
    """The mean of each group of neighboring heads along `dim`, from H heads to G.

    dim: counted from the end, -2 for (..., H, D), -3 for (B, H, S, D).
    Raises: ValueError if the groups don't divide the heads evenly.
    """
    n_heads = heads.shape[dim]
    if n_groups < 1 or n_heads % n_groups:
        raise ValueError(f"{n_heads} heads cannot be averaged in {n_groups} groups evenly")
    return heads.unflatten(dim, (n_groups, n_heads // n_groups)).mean(dim=dim)  # [group means]


def _pooled_rows(weight: Tensor, attention: MultiHeadAttention, n_kv_heads: int) -> Tensor:
    """Stacked query, key and value rows, with the key and value rows pooled."""
    queries, *keys_and_values = weight.split(attention.widths)  # a weight (d_out, C), or a bias
    by_head = [rows.unflatten(0, (attention.n_kv_heads, -1)) for rows in keys_and_values]
    pooled = [mean_of_groups(heads, n_kv_heads, dim=-heads.dim()) for heads in by_head]
    return torch.cat((queries, *(heads.flatten(0, 1) for heads in pooled)))
