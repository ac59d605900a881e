"""The numbers of a whole pass as the browser gets them. A few such pictures are stored in files.

They are painted before any model is loaded. `python -m serving.pass_picture` writes them again; a
test compares them with the model.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from serving.cache import cached
from serving.codes import Codes, coded
from serving.content_words import roles
from serving.flow import flow_of, why_next
from serving.number_text import counted
from serving.one_pass import OnePass, SwitchedRun, one_pass
from serving.pass_claim import claim, first_head, selected_token

STORED_MODEL = "smollm2-135m-instruct"
MARY = "When Mary and John went to the store, John gave a drink to"
ROME = "The capital of France is Paris. The capital of Italy is"
ANIMAL = "The animal didn't cross the street because it was too tired"
_FOLDER = Path(__file__).with_name("stored_passes")
STORED = {MARY: "mary", ROME: "rome", ANIMAL: "animal"}  # text -> the name of its file
_HEADER, _CODES = "header", "codes"


@dataclass(frozen=True, eq=False)
class PassPicture:
    """What is drawn before a layer is opened.

    header: names and sizes, as JSON writes them. numbers: float32 arrays by the names of their
    tensors. codes: the deflated weights of all heads, as `serving.codes` packs them.
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
    """The weights of all heads in a byte each."""
    return coded(passed.run.weights, causal=passed.run.causal)


def _numbers(passed: OnePass) -> dict[str, np.ndarray]:
    """The tensors that the whole picture shows, by the names that the browser knows."""
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


def stored(name: str, text: str) -> PassPicture | None:
    """The stored picture, if there is one of this model and text."""
    if name != STORED_MODEL or text not in STORED:
        return None
    with np.load(_FOLDER / f"{STORED[text]}.npz", allow_pickle=False) as file:
        arrays = dict(file)
    header = json.loads(arrays.pop(_HEADER).tobytes())
    return PassPicture(header, codes=arrays.pop(_CODES).tobytes(), numbers=arrays)


def _store() -> None:
    """Write the stored pictures."""
    for text, name in STORED.items():
        made = picture(one_pass(STORED_MODEL, text))
        header = json.dumps(made.header, ensure_ascii=False).encode()
        texts = {_HEADER: header, _CODES: made.codes}
        arrays = {name: np.frombuffer(text, np.uint8) for name, text in texts.items()}
        path = _FOLDER / f"{name}.npz"
        np.savez_compressed(path, allow_pickle=False, **arrays, **made.numbers)


if __name__ == "__main__":
    _store()
