"""Places in the picture of one pass, and the layer and head that are open in it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pages.start.one_pass.lessons import Subject, address
from pages.start.one_pass.story import Told, captions
from serving.one_pass import N_STRIP, OnePass
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
                "href": address(caption.lesson, subject),
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
