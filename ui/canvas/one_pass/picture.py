"""The data of a complete pass for the browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from serving.cache import cached
from serving.content_words import roles
from serving.flow import flow_of, why_next
from serving.one_pass import OnePass, SwitchedRun
from ui.canvas.codes import Codes, coded
from ui.canvas.one_pass.claim import claim, first_head, selected_token
from ui.text.number_text import counted


@dataclass(frozen=True, eq=False)
class PassPicture:
    """Everything that is drawn before a layer is opened.

    header: names and sizes, JSON-serializable. numbers: float32 arrays by tensor name. codes: the
    deflated weights of all heads, packed by `ui.canvas.codes`.
    """

    header: dict[str, Any]
    numbers: dict[str, np.ndarray]
    codes: bytes


def picture(passed: OnePass) -> PassPicture:
    """The picture of a pass."""
    run, next_token, weights = passed.run, passed.next_token, codes(passed)
    flow, why = flow_of(run), why_next(passed)
    n_layers, n_heads = run.weights.shape[:2]
    off = f" · without {', '.join(run.off)}" if isinstance(run, SwitchedRun) else ""
    first: dict[str, int] = {"token": selected_token(passed)}
    if (carried := first_head(passed, flow, why)) is not None:
        first |= {"layer": carried.layer, "head": carried.head}
        first |= {"row": carried.query, "column": carried.key}
    header = {
        "title": claim(passed, flow, why),
        "subtitle": f"{run.title} · {counted(len(run.tokens), 'token')}{off}",
        "model": run.model,
        "labels": list(run.tokens.labels),
        "roles": list(roles(run.tokens)),
        "layers": n_layers,
        "heads": n_heads,
        "headSize": run.q.shape[-1],
        "causal": run.causal,
        "decoder": next_token is not None,
        "guesses": list(passed.guesses),
        "next": None if next_token is None else list(next_token.tokens),
        "levels": weights.levels,
        "largest": list(weights.largest),
        "first": first,
    }
    return PassPicture(header, _numbers(passed), weights.deflated)


@cached(key=lambda passed: passed.run.key)
def codes(passed: OnePass) -> Codes:
    """The weights of all heads, one byte each."""
    return coded(passed.run.weights, causal=passed.run.causal)


def _numbers(passed: OnePass) -> dict[str, np.ndarray]:
    """The tensors that the picture shows, by the names that the browser uses."""
    tensors, flow, why = passed.run.tensors, flow_of(passed.run), why_next(passed)
    numbers = {
        "flow_edges": flow.edges,
        "flow_residual": flow.residual,
        "flow_mlp": flow.mlp,
        "leaving": passed.leaving,
        "state_norms": passed.state_norms,
        "attention_norms": tensors.attention_norms.numpy(),
        "mlp_norms": tensors.mlp_norms.numpy(),
        "guess_probabilities": passed.guess_probabilities,
    }
    if passed.next_token is not None:
        numbers["next_logits"] = passed.next_token.logits
        numbers["log_sums"] = passed.next_token.log_sums
    if why is not None:
        numbers |= {
            "why_heads": why.heads,
            "why_mlp": why.mlp,
            "why_rest": why.rest,
            "why_top": why.top,
            "why_keys": why.keys,
        }
    return numbers
