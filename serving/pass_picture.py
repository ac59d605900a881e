"""The numbers of a whole pass as the browser gets them. One such picture is stored in a file.

It is painted before any model is loaded. `python -m serving.pass_picture` writes it
anew; a test holds it against the model.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from serving.cache import kept
from serving.codes import Codes, coded
from serving.limits import PACKED_CACHE_BYTES
from serving.number_text import counted
from serving.one_pass import OnePass, SwitchedRun, one_pass

STORED_MODEL = "smollm2-135m-instruct"
STORED_TEXT = "The animal didn't cross the street because it was too tired"
_FILE = Path(__file__).with_name("pass_picture.npz")
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
    n_layers, n_heads = run.weights.shape[:2]
    off = f", without {', '.join(run.off)}" if isinstance(run, SwitchedRun) else ""
    header = {
        "title": f"{run.title}: one pass over {counted(len(run.tokens), 'token')}{off}",
        "model": run.model,
        "labels": list(run.tokens.labels),
        "layers": n_layers,
        "heads": n_heads,
        "headSize": run.q.shape[-1],
        "causal": run.causal,
        "decoder": next_token is not None,
        "guesses": list(passed.guesses),
        "next": None if next_token is None else list(next_token.tokens),
        "levels": weights.levels,
        "largest": list(weights.largest),
    }
    return PassPicture(header, _numbers(passed), weights.deflated)


@kept(PACKED_CACHE_BYTES, key=lambda passed: passed.run.key)
def codes(passed: OnePass) -> Codes:
    """The weights of all heads in a byte each."""
    return coded(passed.run.weights, causal=passed.run.causal)


def _numbers(passed: OnePass) -> dict[str, np.ndarray]:
    """The tensors that the whole picture shows, by the names that it reads out."""
    tensors = passed.run.tensors
    numbers = {
        "token": passed.token,
        "position": passed.position,
        "entering": passed.entering,
        "leaving": passed.leaving,
        "state_norms": passed.state_norms,
        "attention_norms": tensors.attention_norms.numpy(),
        "mlp_norms": tensors.mlp_norms.numpy(),
        "guess_probabilities": passed.guess_probabilities,
    }
    if passed.next_token is not None:
        numbers["next_logits"] = passed.next_token.logits
        numbers["log_sums"] = passed.next_token.log_sums
    return {name: array for name, array in numbers.items() if array is not None}


def stored(name: str, text: str) -> PassPicture | None:
    """The stored picture, if it is of this model and text."""
    if (name, text) != (STORED_MODEL, STORED_TEXT):
        return None
    with np.load(_FILE, allow_pickle=False) as file:
        arrays = dict(file)
    header = json.loads(arrays.pop(_HEADER).tobytes())
    return PassPicture(header, codes=arrays.pop(_CODES).tobytes(), numbers=arrays)


def _store() -> None:
    """Write the stored picture."""
    made = picture(one_pass(STORED_MODEL, STORED_TEXT))
    header = json.dumps(made.header, ensure_ascii=False).encode()
    texts = {_HEADER: header, _CODES: made.codes}
    arrays = {name: np.frombuffer(text, np.uint8) for name, text in texts.items()}
    np.savez_compressed(_FILE, allow_pickle=False, **arrays, **made.numbers)


if __name__ == "__main__":
    _store()
