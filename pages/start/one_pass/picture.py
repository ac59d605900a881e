"""What the picture of one pass is given: a pass, and the layer and head that are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pages.start.one_pass.story import Told, captions
from serving.cache import kept
from serving.codes import coded
from serving.limits import PACKED_CACHE_BYTES
from serving.one_pass import OnePass
from ui.canvas import one_pass

SAYS = (
    "A row is a token. Its ribbon is as wide as its vector is long. In each layer blue is what "
    "attention adds to it, orange what the feed-forward network adds; more colour is more."
)


def draw(
    passed: OnePass,
    off: tuple[str, ...],
    *,
    key: str,
    on_open: Callable[[], None],
    on_switch: Callable[[], None],
) -> None:
    """Draw the whole pass. `off`: what is switched off in it."""
    run, next_token = passed.run, passed.next_token
    weights = codes(passed)
    n_layers, n_heads = run.weights.shape[:2]
    header = {
        "title": f"{run.title}: one pass over {len(run.tokens)} tokens",
        "says": SAYS,
        "picture": key,
        "labels": list(run.tokens.labels),
        "layers": n_layers,
        "heads": n_heads,
        "headSize": run.q.shape[-1],
        "causal": run.causal,
        "decoder": passed.next_token is not None,
        "off": list(off),
        "guesses": list(passed.guesses),
        "next": None if next_token is None else list(next_token.tokens),
        "levels": weights.levels,
        "largest": list(weights.largest),
    }
    one_pass.one_pass(
        header,
        _numbers(passed),
        weights.deflated,
        key=key,
        on_opened_change=on_open,
        on_switched_change=on_switch,
    )


@kept(PACKED_CACHE_BYTES, key=lambda passed: passed.run.key)
def codes(passed: OnePass) -> Any:
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


def open_in(picture: str, told: Told, links: Mapping[str, str]) -> None:
    """Hand a layer, one of its heads and their story to the picture; `links`: of the lessons."""
    layer, head = told.layer, told.head
    header = {
        "picture": picture,
        "layer": layer.layer,
        "head": head.head,
        "scale": head.scale,
        "captions": [
            {
                "title": caption.title,
                "text": caption.text,
                "level": caption.level,
                "layer": layer.layer,
                "head": head.head,
                "matrix": caption.matrix,
                "row": caption.row,
                "column": caption.column,
                "token": told.query,
                "href": links[caption.lesson],
            }
            for caption in captions(told)
        ],
    }
    steps = ("q", "k", "v", "scores", "scaled", "weights", "context", "out_weight", "added")
    numbers = {name: getattr(head, name) for name in steps}
    numbers |= {f"strip {name}": strip for name, strip in layer.strips.items()}
    numbers |= {f"norm {name}": norm for name, norm in layer.norms.items()}
    numbers |= {
        "neurons": layer.neurons,
        "activations": layer.activations,
        "written": layer.written,
    }
    one_pass.opened(header, numbers, key=f"{picture}_opened")
