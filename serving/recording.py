"""A recorded forward pass of a model, and the tensors that are stored from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pretrained import Pretrained
from serving import compute

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.model.block import LayerRecord
    from attention_core.model.transformer import Transformer


@dataclass(frozen=True)
class RunTensors:
    """The recorded tensors of a forward pass over T tokens: float32, on the CPU, read-only.

    L layers, H query heads, H_kv key/value heads, S = T keys, D head size, C width. Queries and
    keys are after rotation, if the model rotates them.
    """

    weights: Tensor  # (L, H, T, S)  the attention weights
    q: Tensor  # (L, H, T, D)
    k: Tensor  # (L, H_kv, S, D)
    v: Tensor  # (L, H_kv, S, D)
    value_norms: Tensor  # (L, H, S)  the lengths ||v_j W_O|| of the vectors a head adds per key
    states: Tensor  # (L + 1, T, C)  the residual stream: before layer 0, and after each layer
    attention_norms: Tensor  # (L, T)  the lengths of the attention outputs
    mlp_norms: Tensor  # (L, T)  the lengths of the feed-forward outputs


@dataclass(frozen=True)
class RecordedPass:
    """The tensors of a pass, and the scale that the scores were multiplied by."""

    tensors: RunTensors
    scale: float


def record_pass(model: Pretrained, token_ids: Sequence[int]) -> RecordedPass:
    """Record a forward pass over these tokens in a compute slot; errors as in `collect_tensors`."""
    import torch

    with compute.slot(), torch.inference_mode():
        ids = torch.tensor([list(token_ids)], device=model.device)
        # logits of all positions aren't needed, and would be a third of the work
        output = model.core(ids, record=True, last_only=True)
        tensors = collect_tensors(model.core, output.hidden_states, output.layers)
    return RecordedPass(tensors, output.records[0].scale)


def collect_tensors(
    core: Transformer, states: Sequence[Tensor], layers: Sequence[LayerRecord]
) -> RunTensors:
    """The tensors to store from a pass; states: (1, T, C) before the first and after each layer.

    Raises: NotFiniteError if values or lengths of vectors are infinite or NaN.
    """
    from attention_core.analysis.contributions import value_norms
    from attention_core.analysis.residual_stream import token_norms
    from attention_core.checks import require_finite

    records = [layer.attention for layer in layers]
    norms = [
        value_norms(record.v, core.out_weight(layer))[0] for layer, record in enumerate(records)
    ]
    added = [record.output for record in records if record.output is not None]  # all have one
    tensors = RunTensors(
        weights=_stacked([record.weights[0] for record in records]),
        q=_stacked([record.q[0] for record in records]),
        k=_stacked([record.k[0] for record in records]),
        v=_stacked([record.v[0] for record in records]),
        value_norms=_stacked(norms),
        states=_stacked([state[0] for state in states]),
        attention_norms=_stacked([token_norms(output[0]) for output in added]),
        mlp_norms=_stacked([token_norms(layer.mlp_output[0]) for layer in layers]),
    )
    for name, numbers in (
        ("queries", tensors.q),
        ("keys", tensors.k),
        ("values", tensors.v),
        ("lengths of values", tensors.value_norms[..., None]),
        ("lengths of states", token_norms(tensors.states)[..., None]),
        ("lengths of what attention adds", tensors.attention_norms[..., None]),
        ("lengths of what the feed-forward network adds", tensors.mlp_norms[..., None]),
    ):
        require_finite(name, numbers)
    return tensors


def _stacked(layers: Sequence[Tensor]) -> Tensor:
    """The layers as the first axis of one float32 tensor on the CPU."""
    import torch

    return torch.stack(list(layers)).float().cpu()
