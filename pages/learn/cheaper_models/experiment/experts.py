"""A trained feed-forward network (MLP) cut into experts, of which a token keeps a few.

The MLP's output is a sum over its hidden units, so units that are cut into groups add up to exactly
the same output. A mixture of experts computes only some of the groups for each token.
Dimension letters: T tokens, F hidden units, C width, E experts, V vocabulary.
Sources: Shazeer et al. 2017, https://arxiv.org/abs/1701.06538; DeepSeekMoE 2024,
https://arxiv.org/abs/2401.06066; a trained MLP cut into experts: Zhang et al. 2022 (MoEfication),
https://arxiv.org/abs/2110.01786.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_core.analysis.residual_stream import last_row_alone
from attention_core.checks import require_int
from attention_core.costs.formulas import feed_forward_products
from attention_core.model.block import LayerRecord
from attention_core.model.config import TransformerConfig
from attention_core.model.transformer import Transformer


def units_by_token(hidden: Tensor) -> Tensor:
    """The numbers of the units, sorted by the token for which each writes most: (F,).

    Units that serve the same token then lie side by side. hidden: (T, F) behind the activation.
    What a unit writes is its number times a row of the matrix behind it, the same for all tokens.
    """
    return hidden.abs().argmax(dim=0).argsort(stable=True)


def cut(units: Tensor, n_experts: int) -> tuple[Tensor, ...]:
    """Cut the units (F,) in their order into experts, whose sizes differ by 1 at most.

    Raises: ValueError for fewer experts than 1 or more than there are units.
    """
    require_int("n_experts", n_experts, most=len(units))
    return units.tensor_split(n_experts)


def contributions(hidden: Tensor, down: Tensor, experts: tuple[Tensor, ...]) -> Tensor:
    """What every expert adds to every token's output: (T, E, C), whose sum over E is the output.

    hidden: (T, F) behind the activation. down: (F, C). A bias of `down` belongs to no expert.
    """
    return torch.stack([hidden[:, units] @ down[units] for units in experts], dim=1)


def kept(added: Tensor, k: int) -> Tensor:
    """Which experts a token keeps, the k whose contributions are longest: (T, E, C) -> (T, E).

    Raises: ValueError for k below 1 or above the number of experts.
    """
    require_int("k", k, most=added.shape[1])
    lengths = torch.linalg.vector_norm(added, dim=-1)
    largest = lengths.topk(k, dim=1).indices
    return torch.zeros_like(lengths, dtype=torch.bool).scatter(1, largest, True)


def output_of(added: Tensor, keep: Tensor, bias: Tensor | None = None) -> Tensor:
    """The output of the kept experts alone: (T, E, C) and (T, E) -> (T, C)."""
    total = (added * keep[..., None]).sum(dim=1)
    return total if bias is None else total + bias


def relative_error(output: Tensor, whole: Tensor) -> Tensor:
    """How far an output is from the whole one, for the length of the whole: (T, C) -> (T,)."""
    difference = torch.linalg.vector_norm(output - whole, dim=-1)
    return difference / torch.linalg.vector_norm(whole, dim=-1)


def errors_by_count(added: Tensor, whole: Tensor, bias: Tensor | None = None) -> Tensor:
    """The mean relative error over all tokens if each keeps 1, 2, … E experts: (E,).

    added: (T, E, C). whole: the MLP's own output (T, C), with its bias if it has one.
    """
    outputs = (output_of(added, kept(added, k), bias) for k in range(1, added.shape[1] + 1))
    return torch.stack([relative_error(output, whole).mean() for output in outputs])


def multiplications(config: TransformerConfig, n_experts: int, k: int) -> tuple[int, int, int]:
    """Multiplications with weights for one token: the whole MLP, k of its experts, a router.

    The experts count as equally large. A router is one matrix, from the width to a number for each.
    Raises: ValueError for k below 1 or above the number of experts.
    """
    require_int("n_experts", n_experts, most=config.d_ff)
    require_int("k", k, most=n_experts)
    whole = feed_forward_products(config)
    return whole, whole * k // n_experts, config.d_model * n_experts


def logits_behind(model: Transformer, layer: int, record: LayerRecord, output: Tensor) -> Tensor:
    """The next token's logits (V,) if the MLP of `layer` had put out this (T, C) instead.

    record: of that layer, in a pass over the text. The layers behind it run again.
    Raises: ValueError for a model that norms the sum (there the MLP's output is not just added).
    """
    if not model.blocks[layer].pre_norm:
        raise ValueError("a model with post-norm layers cannot go on from a changed MLP here")
    changed = record.attention_sum + output
    places = torch.arange(changed.shape[1], device=changed.device)
    hidden, _ = model.run_layers(changed, model.new_pass(changed, places), first=layer + 1)
    return last_row_alone(model, hidden[0])
