"""The data of a complete pass for the browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from serving.cache import cached
from serving.content_words import roles
from serving.flow import compute_flow, next_word_shares
from serving.one_pass import AblatedRun, OnePass
from ui.canvas.codes import Codes, encode
from ui.canvas.one_pass.claim import claim, first_head, selected_token
from ui.text.formatting import plural


@dataclass(frozen=True, eq=False)
class PassPicture:
    """Everything that is drawn before a layer is opened.

    header: names and sizes, JSON-serializable. numbers: float32 arrays by tensor name. codes: the
    deflated weights of all heads, packed by `ui.canvas.codes`.
    """

    header: dict[str, Any]
    numbers: dict[str, np.ndarray]
    codes: bytes


def picture(one_pass: OnePass) -> PassPicture:
    """Build the picture of a pass."""
    run, next_token, weights = one_pass.run, one_pass.next_token, codes(one_pass)
    flow, why = compute_flow(run), next_word_shares(one_pass)
    n_layers, n_heads = run.weights.shape[:2]
    off = f" · without {', '.join(run.off)}" if isinstance(run, AblatedRun) else ""
    first: dict[str, int] = {"token": selected_token(one_pass)}
    if (carried := first_head(one_pass, flow, why)) is not None:
        first |= {"layer": carried.layer, "head": carried.head}
        first |= {"row": carried.query, "column": carried.key}
    header = {
        "title": claim(one_pass, flow, why),
        "subtitle": f"{run.title} · {plural(len(run.tokens), 'token')}{off}",
        "model": run.model,
        "labels": list(run.tokens.labels),
        "roles": list(roles(run.tokens)),
        "layers": n_layers,
        "heads": n_heads,
        "headSize": run.q.shape[-1],
        "causal": run.causal,
        "decoder": next_token is not None,
        "guesses": list(one_pass.guesses),
        "next": None if next_token is None else list(next_token.tokens),
        "levels": weights.levels,
        "largest": list(weights.largest),
        "first": first,
    }
    return PassPicture(header, _numbers(one_pass), weights.deflated)


@cached(key=lambda one_pass: one_pass.run.key)
def codes(one_pass: OnePass) -> Codes:
    """The weights of all heads, one byte each."""
    return encode(one_pass.run.weights, causal=one_pass.run.causal)


def _numbers(one_pass: OnePass) -> dict[str, np.ndarray]:
    """The tensors that the picture shows, by the names that the browser uses."""
    tensors, flow, why = (
        one_pass.run.tensors,
        compute_flow(one_pass.run),
        next_word_shares(one_pass),
    )
    numbers = {
        "flow_edges": flow.edges,
        "flow_residual": flow.residual,
        "flow_mlp": flow.mlp,
        "leaving": one_pass.final_states,
        "state_norms": one_pass.state_norms,
        "attention_norms": tensors.attention_norms.numpy(),
        "mlp_norms": tensors.mlp_norms.numpy(),
        "guess_probabilities": one_pass.guess_probabilities,
    }
    if one_pass.next_token is not None:
        numbers["next_logits"] = one_pass.next_token.logits
        numbers["log_sums"] = one_pass.next_token.log_sums
    if why is not None:
        numbers |= {
            "why_heads": why.heads,
            "why_mlp": why.mlp,
            "why_rest": why.rest,
            "why_top": why.top,
            "why_keys": why.keys,
        }
    return numbers
