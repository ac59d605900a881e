"""The same weights in a model of another form: latents absorbed or expanded, a window, fewer heads.

The forms share their tensors: nothing is copied, so what is changed in one changes in all.
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
    """A model that holds these very tensors, all its weights by their names.

    Training mode and gradients are those of `like`, as far as it has weights of the same names.
    Raises: RuntimeError, from torch, for names or shapes that do not fit.
    """
    with torch.device("meta"):  # no memory and no random numbers for weights that are replaced
        model = Transformer(config)
    model.load_state_dict(dict(weights), strict=True, assign=True)
    needs_gradient = {name: parameter.requires_grad for name, parameter in like.named_parameters()}
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(needs_gradient.get(name, any(needs_gradient.values())))
    return model.train(like.training)


def in_form(model: Transformer, *, absorbed: bool) -> Transformer:
    """The same model with its latent attention in the absorbed or in the expanded form.

    A cache of one fits the other.
    Raises: ValueError for a model without latent attention.
    """
    latent = model.config.latent
    if latent is None:
        raise ValueError("this model has no latent attention, and so no absorbed form of it")
    config = replace(model.config, latent=replace(latent, absorbed=absorbed))
    return with_weights(config, model.state_dict(), like=model)


def windowed(model: Transformer, window: int) -> Transformer:
    """The same model, but a query sees the last `window` keys only.

    Raises: ValueError for a window below 1.
    """
    return with_weights(replace(model.config, window=window), model.state_dict(), like=model)
