"""Distillation: a student learns from the whole distribution of a teacher.

The teacher is a whole model. The student is the same model cut off after some of its layers,
followed by the final norm and the output matrix (`logit_lens`).
Dimension letters: L layers, T tokens, C width, V vocabulary.
Source: Hinton et al. 2015, https://arxiv.org/abs/1503.02531.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from attention_core.checks import require_int, require_positive
from attention_core.costs.formulas import forward_flops
from attention_core.costs.parameters import on_meta_device, parameters_by_part
from attention_core.model.config import TransformerConfig
from attention_core.model.transformer import Transformer


def entropy_bits(logits: Tensor) -> Tensor:
    """Entropy of each row's distribution in bits: (..., V) -> (...)."""
    logs = logits.log_softmax(dim=-1)
    return -(logs.exp() * logs).sum(dim=-1) / math.log(2)


def divergence_bits(teacher: Tensor, student: Tensor, temperature: float = 1.0) -> Tensor:
    """Kullback-Leibler divergence KL(teacher || student) in bits.

    Logits (..., V) and (..., V) -> (...). Both are divided by the temperature first.
    Raises: ValueError for a temperature that isn't positive.
    """
    require_positive("temperature", temperature)
    right = (teacher / temperature).log_softmax(dim=-1)
    guessed = (student / temperature).log_softmax(dim=-1)
    return (right.exp() * (right - guessed)).sum(dim=-1) / math.log(2)


def soft_gradient(teacher: Tensor, student: Tensor, temperature: float = 1.0) -> Tensor:
    """Gradient of the divergence (in nats) with respect to the student's logits.

    (..., V) -> (..., V). It's (p_student - p_teacher) / temperature, with both distributions at
    that temperature.
    Raises: ValueError for a temperature that isn't positive.
    """
    require_positive("temperature", temperature)
    guessed = (student / temperature).softmax(dim=-1)
    return (guessed - (teacher / temperature).softmax(dim=-1)) / temperature


def hard_gradient(token_ids: Tensor, student: Tensor) -> Tensor:
    """Gradient of the cross-entropy loss with respect to the student's logits.

    It's p_student - one-hot. token_ids: the right next tokens (T,). Logits (T, V) -> (T, V).
    """
    right = torch.nn.functional.one_hot(token_ids, student.shape[-1])
    return student.softmax(dim=-1) - right


def n_pushed(gradient: Tensor, least: float = 1e-3) -> Tensor:
    """Count the logits that change by more than `least`: (..., V) -> (...)."""
    return (gradient.abs() > least).sum(dim=-1)


def costs(config: TransformerConfig, n_layers: int, n_tokens: int) -> tuple[int, int]:
    """Parameters of the first `n_layers` layers, and multiplications per pass.

    The pass reads n_tokens tokens and computes the logits of the last one only.
    Raises: ValueError for a number of layers that the model doesn't have, or fewer than 1 token.
    """
    require_int("n_layers", n_layers, most=config.n_layers)
    smaller = replace(config, n_layers=n_layers)
    n_parameters = sum(parameters_by_part(on_meta_device(Transformer, smaller)).values())
    return n_parameters, forward_flops(smaller, n_tokens, n_tokens) // 2
