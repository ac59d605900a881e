"""A trained feed-forward network (MLP) split into experts.

The MLP's output is a sum over its hidden units, so groups of units add up to exactly the same
output. A mixture of experts computes only some of the groups for each token.
Dimension letters: T tokens, F hidden units, C width, E experts, V vocabulary.
Sources: Shazeer et al. 2017, https://arxiv.org/abs/1701.06538; DeepSeekMoE 2024,
https://arxiv.org/abs/2401.06066; splitting a trained MLP: Zhang et al. 2022 (MoEfication),
https://arxiv.org/abs/2110.01786.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_core.analysis.residual_stream import last_row_logits
from attention_core.checks import require_int
from attention_core.costs.formulas import feed_forward_products
from attention_core.model.block import LayerRecord
from attention_core.model.config import TransformerConfig
from attention_core.model.transformer import Transformer


def units_by_token(hidden: Tensor) -> Tensor:
    """Unit indices (F,), sorted by the token for which each unit is most active.

    Units that respond to the same token end up next to each other. hidden: (T, F), after the
    activation. Comparing activations is enough because a unit's output is its activation times a
    fixed row of the second matrix.
    """
    return hidden.abs().argmax(dim=0).argsort(stable=True)


def split_units(units: Tensor, n_experts: int) -> tuple[Tensor, ...]:
    """Split the units (F,) into consecutive experts whose sizes differ by at most 1.

    Raises: ValueError for fewer than 1 expert or more experts than units.
    """
    require_int("n_experts", n_experts, most=len(units))
    return units.tensor_split(n_experts)


def contributions(hidden: Tensor, down: Tensor, experts: tuple[Tensor, ...]) -> Tensor:
    """Contribution of each expert to each token: (T, E, C), which sums to the output.

    hidden: (T, F), after the activation. down: (F, C). The bias of `down` isn't included.
    """
    return torch.stack([hidden[:, units] @ down[units] for units in experts], dim=1)


def top_k_mask(added: Tensor, k: int) -> Tensor:
    """Mask of the k experts with the longest contributions: (T, E, C) -> (T, E).

    Raises: ValueError for k below 1 or above the number of experts.
    """
    require_int("k", k, most=added.shape[1])
    lengths = torch.linalg.vector_norm(added, dim=-1)
    largest = lengths.topk(k, dim=1).indices
    return torch.zeros_like(lengths, dtype=torch.bool).scatter(1, largest, True)


def expert_output(added: Tensor, keep: Tensor, bias: Tensor | None = None) -> Tensor:
    """Output of the kept experts: (T, E, C) and (T, E) -> (T, C)."""
    total = (added * keep[..., None]).sum(dim=1)
    return total if bias is None else total + bias


def relative_error(output: Tensor, whole: Tensor) -> Tensor:
    """Length of the difference divided by the length of `whole`: (T, C) -> (T,)."""
    difference = torch.linalg.vector_norm(output - whole, dim=-1)
    return difference / torch.linalg.vector_norm(whole, dim=-1)


def errors_by_count(added: Tensor, whole: Tensor, bias: Tensor | None = None) -> Tensor:
    """Mean relative error over all tokens with 1, 2, …, E experts per token: (E,).

    added: (T, E, C). whole: (T, C), the MLP's output including its bias.
    """
    outputs = (
        expert_output(added, top_k_mask(added, k), bias) for k in range(1, added.shape[1] + 1)
    )
    return torch.stack([relative_error(output, whole).mean() for output in outputs])


def multiplications(config: TransformerConfig, n_experts: int, k: int) -> tuple[int, int, int]:
    """Multiplications per token: the whole MLP, k of its experts, and a router.

    The experts are assumed to be equally large. A router is one (C, E) matrix.
    Raises: ValueError for k below 1 or above the number of experts.
    """
    require_int("n_experts", n_experts, most=config.d_ff)
    require_int("k", k, most=n_experts)
    whole = feed_forward_products(config)
    return whole, whole * k // n_experts, config.d_model * n_experts


def logits_after(model: Transformer, layer: int, record: LayerRecord, output: Tensor) -> Tensor:
    """Next-token logits (V,) if the MLP of `layer` had returned `output` (T, C).

    record: that layer's record from a pass over the text. The later layers run again.
    Raises: ValueError for post-norm models, where the MLP's output isn't simply added.
    """
    if not model.blocks[layer].pre_norm:
        raise ValueError("a model with post-norm layers can't resume from a changed MLP")
    changed = record.attention_sum + output
    places = torch.arange(changed.shape[1], device=changed.device)
    hidden, _ = model.run_layers(changed, model.new_pass(changed, places), first=layer + 1)
    return last_row_logits(model, hidden[0])
