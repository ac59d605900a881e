"""Data for the pictures of a pass: information flow, and contributions to next-token logits.

Dimension letters: L layers, H query heads, T tokens, E edges, N next words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serving import compute
from serving.cache import cached
from serving.one_pass import N_DRAWN, OnePass
from serving.runs import Run

LEAST_SHARE = 0.015  # edges below this importance aren't drawn
MOST_EDGES = 6_000  # only the strongest are drawn; 12 tokens of SmolLM2 have about 1,200
N_HEADS = 3  # heads stored per edge, those with the largest shares
N_SPLIT = 12  # heads per logit, those with the largest shares, that are split by key


@dataclass(frozen=True, eq=False)
class Flow:
    """The information flow through a pass, float32.

    edges: (E, 4 + 2 * N_HEADS): layer, query, key, importance, then the heads with the largest
    shares, each followed by its share. residual, mlp: (L, T), as in `InformationFlow`.
    """

    edges: np.ndarray
    residual: np.ndarray
    mlp: np.ndarray


@dataclass(frozen=True, eq=False)
class LogitShares:
    """The contribution of every part of the model to the most likely next words' logits, float32.

    heads (N, L, H), mlp (N, L); rest (N, 4): the token embedding, the attention biases, the bias of
    the last norm, the output bias. All contributions to a word add up to its logit. top
    (N, N_SPLIT): the heads with the largest contributions, as layer * H + head. keys
    (N, N_SPLIT, T): the contributions of these heads, split by key. clues (L, H, T): every head's
    contribution to the most likely word, split by key.
    """

    heads: np.ndarray
    mlp: np.ndarray
    rest: np.ndarray
    top: np.ndarray
    keys: np.ndarray
    clues: np.ndarray


@dataclass(frozen=True)
class HeadEdge:
    """An edge from key to query in a layer, with its importance and strongest head."""

    layer: int
    head: int
    query: int
    key: int
    share: float


def _disabled_heads(run: Run) -> frozenset[tuple[int, int]]:
    """The heads that are switched off in a pass, as (layer, head)."""
    disabled = getattr(run, "disabled", None)
    return frozenset() if disabled is None else disabled.heads


@cached(key=lambda run: run.key)
def compute_flow(run: Run) -> Flow:
    """The information flow of a recorded pass; reruns each layer from its recorded input."""
    import torch

    from attention_core.analysis.information_flow import edge_heads, information_flow

    core, off = run.pretrained.core, _disabled_heads(run)
    with compute.slot(), torch.inference_mode():
        layers = [run.layer(number) for number in range(core.config.n_layers)]
        flow = information_flow(core, layers, off)
        edges = _strongest(flow.edges.numpy())
        carriers = []
        for number, layer in enumerate(layers):
            own = edges[edges[:, 0] == number]
            ends = torch.from_numpy(own[:, 1:]).to(layer.input.device)
            carriers.append(edge_heads(core, layer, number, ends[:, 0], ends[:, 1], off))
    shares = torch.cat(carriers)  # (E, H)
    top = shares.topk(min(N_HEADS, shares.shape[1]), dim=1)
    numbers = np.zeros((len(edges), 4 + 2 * N_HEADS), np.float32)
    numbers[:, :3] = edges
    numbers[:, 3] = flow.edges.numpy()[tuple(edges.T)]
    count = top.values.shape[1]
    numbers[:, 4 : 4 + 2 * count : 2] = top.indices.numpy()
    numbers[:, 5 : 5 + 2 * count : 2] = top.values.numpy()
    return Flow(numbers, flow.residual.numpy(), flow.mlp.numpy())


def _strongest(shares: np.ndarray) -> np.ndarray:
    """The layer, query and key of each edge that is drawn, (E, 3), ordered by layer."""
    least = LEAST_SHARE
    if (shares >= least).sum() > MOST_EDGES:
        least = float(np.partition(shares.ravel(), -MOST_EDGES)[-MOST_EDGES])
    return np.argwhere(shares >= least)


@cached(key=lambda one_pass: one_pass.run.key)
def next_word_shares(one_pass: OnePass) -> LogitShares | None:
    """Contributions to the most likely next words' logits; None if the model predicts none."""
    import torch

    from attention_core.analysis.logit_attribution import logit_attribution

    if one_pass.next_token is None:
        return None
    run, core = one_pass.run, one_pass.run.pretrained.core
    position, off = len(run.tokens) - 1, _disabled_heads(one_pass.run)
    with compute.slot(), torch.inference_mode():
        layers = [run.layer(number) for number in range(core.config.n_layers)]
        ids = one_pass.next_token.ids[:N_DRAWN]
        shares = logit_attribution(core, layers, position, ids, off=off)
    heads = shares.heads.float().numpy()  # (N, L, H)
    flat = heads.reshape(len(ids), -1)
    top = np.argsort(-np.abs(flat), axis=1, kind="stable")[:, :N_SPLIT]
    by_key = shares.keys.float().flatten(1, 2).numpy()  # (N, L, H, T) -> (N, L*H, T)
    rest = (
        shares.embedding,
        shares.attention_bias.sum(dim=1),
        shares.norm_bias,
        shares.output_bias,
    )
    return LogitShares(
        heads=heads,
        mlp=shares.mlp.float().numpy(),
        rest=torch.stack(rest, dim=1).float().numpy(),
        top=top.astype(np.float32),
        keys=np.take_along_axis(by_key, top[:, :, None], axis=1),
        clues=shares.keys[0].float().numpy(),
    )


def strongest_edge_into(run: Run, flow: Flow, token: int | None) -> HeadEdge | None:
    """The most important edge into a token (None: any token) from a different token.

    Leaves out special tokens and a decoder's first token, because that one is an attention sink
    (Xiao et al. 2023, https://arxiv.org/abs/2309.17453).
    """
    resting = np.array(run.tokens.special)
    resting[0] |= run.causal
    query, key = flow.edges[:, 1].astype(int), flow.edges[:, 2].astype(int)
    fits = ~resting[query] & ~resting[key] & (query != key)
    if token is not None:
        fits &= query == token
    if not fits.any():
        return None
    at = int(np.where(fits, flow.edges[:, 3], -1.0).argmax())
    layer, head = int(flow.edges[at, 0]), int(flow.edges[at, 4])
    return HeadEdge(layer, head, int(query[at]), int(key[at]), float(flow.edges[at, 3]))
