"""Information flow routes: which connections between tokens matter in each layer.

Attention updates token i to y_i = x_i + attention output. The sources of y_i are its own residual
stream x_i and, for every token j it attends to, z_ij = sum over heads h of
weight_h(i, j) * v_j W_O,h. The importance of a source s is how much closer it brings the sum to its
final value, max(0, |y|_1 - |y - s|_1), divided by the importance of all sources together. The
feed-forward network is measured the same way against the stream it's added to. In post-norm layers
(BERT), sums are measured before the norm.

Source: Ferrando and Voita 2024, https://arxiv.org/abs/2403.00824, section 2.
Dimension letters: L layers, H query heads, T tokens, S = T keys, C width, E edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.analysis.projected_values import Heads, projected_values
from attention_core.model.block import LayerRecord
from attention_core.model.transformer import Transformer

_QUERIES_AT_ONCE = 8  # their vectors z_ij, (S, 8, C), fit in the CPU cache
_EDGES_AT_ONCE = 128


@dataclass(frozen=True)
class InformationFlow:
    """The importance of every source, float32 on the CPU.

    edges: (L, T, T) by layer, query i and key j.
    residual: (L, T), the token's own stream. `edges` summed over keys plus `residual` is 1, or 0 if
    no source matters.
    mlp: (L, T), the share of the feed-forward network; the stream it's added to has 1 - mlp.
    """

    edges: Tensor
    residual: Tensor
    mlp: Tensor


def information_flow(
    model: Transformer, layers: Sequence[LayerRecord], off: Heads = ()
) -> InformationFlow:
    """Compute the importance of every edge for one recorded text.

    layers: from a pass with `record=True` and a batch of one text. off: heads whose contexts were
    replaced by zeros.
    Raises: ValueError for a batch of several texts, or if the number of records is wrong.
    """
    if len(layers) != model.config.n_layers:
        raise ValueError(f"{len(layers)} records for a model of {model.config.n_layers} layers")
    edges, residual = [], []
    for number, record in enumerate(layers):
        of_layer = _attention_shares(record, projected_values(model, record, number, off))
        edges.append(of_layer[0])
        residual.append(of_layer[1])
    pre_norm = model.config.norm_order == "pre"
    mlp = [_mlp_shares(record, pre_norm) for record in layers]
    stacked = (torch.stack(parts).float().cpu() for parts in (edges, residual, mlp))
    return InformationFlow(*stacked)


def _attention_shares(record: LayerRecord, values: Tensor) -> tuple[Tensor, Tensor]:
    """Importance of every key (T, S) and of the token's own stream (T)."""
    weights = record.attention.weights[0].float().permute(2, 1, 0)  # (H, T, S) -> (S, T, H)
    y, x = record.attention_sum[0].float(), record.input[0].float()  # (T, C)
    edges = y.new_zeros(len(y), len(values))
    for first in range(0, len(y), _QUERIES_AT_ONCE):
        rows = slice(first, first + _QUERIES_AT_ONCE)
        visible = (
            weights[:, rows].any(dim=-1).any(dim=-1).nonzero()[:, 0]
        )  # keys that any query sees
        z = weights[visible, rows] @ values[visible]  # (S, q, H) @ (S, H, C) -> (S, q, C)
        edges[rows, visible] = importance(z, y[rows]).t()
    residual = importance(x, y)
    total = edges.sum(dim=1) + residual
    return _share(edges, total[:, None]), _share(residual, total)


def _mlp_shares(record: LayerRecord, pre_norm: bool) -> Tensor:
    """The feed-forward network's share of each token's vector after it, (T)."""
    stream = record.attention_sum if pre_norm else record.mlp_reads
    total = record.mlp_sum[0].float()
    network = importance(record.mlp_output[0].float(), total)
    return _share(network, network + importance(stream[0].float(), total))


def importance(source: Tensor, total: Tensor) -> Tensor:
    """max(0, |total|_1 - |total - source|_1) over the last axis: (..., C) -> (...)."""
    left = torch.linalg.vector_norm(total - source, ord=1, dim=-1)
    return (torch.linalg.vector_norm(total, ord=1, dim=-1) - left).clamp(min=0)


def _share(part: Tensor, total: Tensor) -> Tensor:
    """`part / total`, or 0 if the total is 0."""
    return torch.where(total > 0, part / total, 0.0)


def edge_heads(
    model: Transformer,
    record: LayerRecord,
    layer: int,
    queries: Tensor,
    keys: Tensor,
    off: Heads = (),
) -> Tensor:
    """Each head's share of the edges from `keys` to `queries` (E) of a layer: (E, H).

    Each head's vector weight_h(i, j) * v_j W_O,h is measured against y_i. The shares of an edge sum
    to 1, or to 0 if no head matters. Float32 on the CPU.
    """
    values = projected_values(model, record, layer, off)  # (S, H, C)
    weights = record.attention.weights[0].float()[:, queries, keys].t()  # (E, H)
    y = record.attention_sum[0].float()
    shares = [weights.new_zeros(0, weights.shape[1])]
    for first in range(0, len(queries), _EDGES_AT_ONCE):
        some = slice(first, first + _EDGES_AT_ONCE)
        passed = weights[some, :, None] * values[keys[some]]  # (e, H, C)
        carried = importance(passed, y[queries[some], None])
        shares.append(_share(carried, carried.sum(dim=1, keepdim=True)))
    return torch.cat(shares).cpu()


@dataclass(frozen=True)
class Route:
    """The connections that lead to one token's final vector, all bool.

    nodes: (L + 1, T), whether the route includes a token's vector before layer l (or after the
    last).
    residual: (L, T), whether it includes the token's own stream through the attention of layer l.
    edges: (L, T, T). mlp: (L, T), whether the feed-forward network matters at a node of the route.
    """

    nodes: Tensor
    residual: Tensor
    edges: Tensor
    mlp: Tensor


def route(flow: InformationFlow, token: int, threshold: float) -> Route:
    """Trace all connections with at least this importance back from a final vector.

    Raises: ValueError if the text doesn't have this token, or for a threshold outside (0, 1].
    """
    n_layers, n_tokens = flow.residual.shape
    if not 0 <= token < n_tokens:
        raise ValueError(f"token must be 0 to {n_tokens - 1}, got {token}")
    if not 0 < threshold <= 1:
        raise ValueError(f"the threshold must be above 0 and at most 1, got {threshold}")
    nodes = torch.zeros(n_layers + 1, n_tokens, dtype=torch.bool)
    nodes[-1, token] = True
    kept, edges = flow.residual >= threshold, flow.edges >= threshold
    for layer in reversed(range(n_layers)):
        kept[layer] &= nodes[layer + 1]
        edges[layer] &= nodes[layer + 1, :, None]
        nodes[layer] = kept[layer] | edges[layer].any(dim=0)
    return Route(nodes, kept, edges, (flow.mlp >= threshold) & nodes[1:])
