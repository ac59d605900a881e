"""Places in the picture of one pass, and the layer and head that are open in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pages.start.one_pass.lessons import Subject, address
from pages.start.one_pass.story import Told, captions
from serving.one_pass import N_STRIP, OnePass, OpenLayer
from ui.canvas import one_pass

SAYS_OF_A_HEAD = (
    "A row is a token. In q, k, v and context a column is one number of the head's vectors; in "
    "scores and weights it is a token that is looked at."
)

PLACE = "one_pass_at"  # the parameter of the address
_LEVELS = ("whole", "layer", "head", "matrix")
_MATRICES = ("q", "k", "scores", "scaled", "weights", "v", "context", "added")
_NUMBERS = ("layer", "head", "row", "column", "token", "told")
Place = Mapping[str, str | int]


def place_of(text: str) -> Place | None:
    """A place in the picture as the address writes it, or None if it is none.

    Level, matrix, then the numbers of layer, head, row, column, token and caption, with blanks
    between them: "matrix weights 12 3 5 2 5 -1".
    """
    parts = text.split(" ")
    if len(parts) != 2 + len(_NUMBERS) or parts[0] not in _LEVELS or parts[1] not in _MATRICES:
        return None
    if not all(re.fullmatch(r"-1|\d{1,4}", part) for part in parts[2:]):
        return None
    numbers = dict(zip(_NUMBERS, map(int, parts[2:]), strict=True))
    return {"level": parts[0], "matrix": parts[1], **numbers}


def is_in(place: Place, passed: OnePass) -> bool:
    """Whether the pass has the place: a shorter text or another model may not have it."""
    n_layers, n_heads, n_tokens, size = passed.run.q.shape
    columns = {"scores": n_tokens, "scaled": n_tokens, "weights": n_tokens, "added": N_STRIP}
    limits = {
        "layer": n_layers,
        "head": n_heads,
        "row": n_tokens,
        "column": columns.get(str(place["matrix"]), size),
        "token": n_tokens,
    }
    return all(0 <= int(place[name]) < limit for name, limit in limits.items())


def written(place: Place) -> str:
    """The place as the address writes it."""
    return " ".join(str(place[part]) for part in ("level", "matrix", *_NUMBERS))


STEPS = ("q", "k", "v", "scores", "scaled", "weights", "context", "out_weight", "added")


def open_in(picture: str, told: Told, text: str) -> None:
    """Hand a layer, one of its heads and their story to the picture of a pass over `text`."""
    layer, head = told.layer, told.head
    subject = Subject(
        text, told.passed.run.model, layer.layer, head.head, query=told.query, key=told.key
    )
    header = {
        "says": SAYS_OF_A_HEAD,
        "picture": picture,
        "layer": layer.layer,
        "head": head.head,
        "scale": head.scale,
        "captions": story(told, lambda lesson: address(lesson, subject)),
    }
    steps = {name: getattr(head, name) for name in STEPS}
    one_pass.opened(header, steps | of_layer(layer), key=f"{picture}_opened")


def story(told: Told, lesson: Callable[[str], str]) -> list[dict[str, Any]]:
    """The captions as the picture tells them. `lesson`: the address of a lesson."""
    return [
        {
            "title": caption.title,
            "text": caption.text,
            "level": caption.level,
            "layer": told.layer.layer,
            "head": told.head.head,
            "matrix": caption.matrix,
            "row": caption.row,
            "column": caption.column,
            "token": told.query,
            "href": lesson(caption.lesson),
        }
        for caption in captions(told)
    ]


def of_layer(layer: OpenLayer) -> dict[str, np.ndarray]:
    """What the picture shows of an open layer, whichever head is open in it."""
    return {
        **{f"strip {name}": strip for name, strip in layer.strips.items()},
        **{f"norm {name}": norm for name, norm in layer.norms.items()},
        **{
            "neurons": layer.neurons,
            "activations": layer.activations,
            "written": layer.written,
        },
    }
