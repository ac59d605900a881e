"""Runs of a model on a visitor's text, kept for all visitors within a bound in bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pretrained import Pretrained, Tokens
from serving import models, turns
from serving.cache import kept
from serving.limits import MAX_MAP_TOKENS, RUN_CACHE_BYTES, check_text, check_tokens

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core import AttentionRecord


@dataclass(frozen=True)
class AttentionRun:
    """The attention weights of every head on one text.

    All arrays are float32, read-only, and straight from the records of one forward pass, S = T:
    `weights[layer, head, query, key]` is (layers, H, T, S); `q` (layers, H, T, D), `k` and `v`
    (layers, H_kv, S, D) are the queries, keys and values, rotated where the model does so;
    `value_norms` (layers, H, S) are the lengths ||v_j W_O|| of what a head writes for a key;
    `scale` is what the scores are multiplied with.
    """

    model: str
    title: str
    tokens: Tokens
    weights: np.ndarray
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    value_norms: np.ndarray
    scale: float
    causal: bool

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(a.nbytes for a in (self.weights, self.q, self.k, self.v, self.value_norms))


@kept(RUN_CACHE_BYTES, key=lambda name, text: (*models.key(name), text))
def run(name: str, text: str) -> AttentionRun:
    """Attention of model `name` on `text`.

    Raises: OverLimit for a text that is too long, ValueError for one without any token.
    """
    import torch

    from attention_core.contributions import value_norms

    model, tokens, records = recorded(name, text)
    with torch.inference_mode():
        norms = [
            value_norms(record.v, model.core.out_weight(layer))[0]
            for layer, record in enumerate(records)
        ]
    return AttentionRun(
        model=name,
        title=model.spec.title,
        tokens=tokens,
        weights=_stacked([record.weights[0] for record in records]),
        q=_stacked([record.q[0] for record in records]),
        k=_stacked([record.k[0] for record in records]),
        v=_stacked([record.v[0] for record in records]),
        value_norms=_stacked(norms),
        scale=records[0].scale,
        causal=model.core.config.causal,
    )


def _stacked(layers: Sequence[Tensor]) -> np.ndarray:
    """One read-only float32 array with the layers as its first axis."""
    import torch

    array: np.ndarray = torch.stack(list(layers)).float().cpu().numpy()
    array.setflags(write=False)
    return array


def recorded(name: str, text: str) -> tuple[Pretrained, Tokens, tuple[AttentionRecord, ...]]:
    """One forward pass, not kept: the model, the tokens, and the record of every layer.

    Raises: OverLimit for a text that is too long, ValueError for one without any token.
    """
    import torch

    check_text(text)
    model = models.get(name)
    tokens = models.encoded(model, text, MAX_MAP_TOKENS, "a head map")
    check_tokens(len(tokens.ids), model.core.config.context_length, "the context of this model")
    with turns.turn(), torch.inference_mode():
        ids = torch.tensor([tokens.ids], device=model.device)
        return model, tokens, model.core(ids, record=True).records
