"""Change the form of a model but keep its weights: latent form, or a window.

The new model shares its tensors with the old one, so changes to one affect the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from attention_core.model.config import TransformerConfig
from attention_core.model.transformer import Transformer


def with_weights(
    config: TransformerConfig, weights: Mapping[str, Tensor], *, like: Transformer
) -> Transformer:
    """Build a model of this configuration that uses these tensors, without copying.

    weights: all tensors by name. like: the model to copy training mode and `requires_grad` from,
    for weights with the same names.
    Raises: RuntimeError, from torch, if names or shapes don't fit.
    """
    with torch.device("meta"):  # no memory or random numbers for weights that get replaced
        model = Transformer(config)
    model.load_state_dict(dict(weights), strict=True, assign=True)
    needs_gradient = {name: parameter.requires_grad for name, parameter in like.named_parameters()}
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(needs_gradient.get(name, any(needs_gradient.values())))
    return model.train(like.training)


def with_latent_form(model: Transformer, *, absorbed: bool) -> Transformer:
    """The same model with its latent attention in the absorbed or expanded form.

    Both forms can use the same cache.
    Raises: ValueError if the model has no latent attention.
    """
    latent = model.config.latent
    if latent is None:
        raise ValueError("only a model with latent attention has an absorbed form")
    config = replace(model.config, latent=replace(latent, absorbed=absorbed))
    return with_weights(config, model.state_dict(), like=model)


def with_window(model: Transformer, window: int) -> Transformer:
    """The same model, with each query limited to the last `window` keys.

    Raises: ValueError for a window below 1.
    """
    return with_weights(replace(model.config, window=window), model.state_dict(), like=model)
