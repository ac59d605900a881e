"""Runs of a model on a visitor's text, kept for all visitors within a bound in bytes."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pretrained import Pretrained, Tokens
from ui import models
from ui.bounded import BoundedCache
from ui.limits import MAX_MAP_TOKENS, RUN_CACHE_BYTES, check_text, check_tokens

if TYPE_CHECKING:
    from attention_core import AttentionRecord


@dataclass(frozen=True)
class AttentionRun:
    """The attention weights of every head on one text.

    `weights` is (layers, H, T, S) with S = T, float32, read-only, straight from the records of the
    forward pass: `weights[layer, head, query, key]`.
    """

    model: str
    title: str
    tokens: Tokens
    weights: np.ndarray
    causal: bool


_runs: BoundedCache[AttentionRun] = BoundedCache(RUN_CACHE_BYTES, lambda run: run.weights.nbytes)

# one forward pass at a time: two at once on the same cores are slower than one after the other
_gate = threading.Lock()


def run(name: str, text: str) -> AttentionRun:
    """Attention of model `name` on `text`.

    Raises: OverLimit for a text that is too long, ValueError for one without any token.
    """
    check_text(text)
    return _runs.get((*models.key(name), text), lambda: _forward(name, text))


def _forward(name: str, text: str) -> AttentionRun:
    import torch

    model, tokens, records = recorded(name, text)
    weights = torch.stack([record.weights[0] for record in records]).float().cpu().numpy()
    weights.setflags(write=False)
    return AttentionRun(
        model=name,
        title=model.spec.title,
        tokens=tokens,
        weights=weights,
        causal=model.core.config.causal,
    )


def recorded(name: str, text: str) -> tuple[Pretrained, Tokens, tuple[AttentionRecord, ...]]:
    """One forward pass, not kept: the model, the tokens, and the record of every layer.

    Raises: OverLimit for a text that is too long, ValueError for one without any token.
    """
    import torch

    check_text(text)
    model = models.get(name)
    tokens = models.encoded(model, text, MAX_MAP_TOKENS, "a head map")
    check_tokens(len(tokens.ids), model.core.config.context_length, "the context of this model")
    with _gate, torch.inference_mode():
        ids = torch.tensor([tokens.ids], device=model.device)
        return model, tokens, model.core(ids, record=True).records


def clear() -> None:
    """Forget the kept runs (tests)."""
    _runs.clear()
