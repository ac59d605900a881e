"""Places in the picture of one pass, as the address of a page and the browser write them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from serving.one_pass import N_DRAWN, N_STRIP, OnePass

_LEVELS = ("whole", "layer", "head", "matrix")
_MATRICES = ("q", "k", "scores", "scaled", "weights", "v", "context", "added")
_NUMBERS = ("layer", "head", "row", "column", "token", "told", "detail", "why")
_FIRST = {"detail": 3, "why": -1}  # of older links, which end before them
_MOST = {"detail": 6, "why": N_DRAWN - 1}
Place = Mapping[str, str | int]


def place_of(text: str) -> Place | None:
    """A place in the picture as the address writes it, or None if it is none.

    Level, matrix, then the numbers of layer, head, row, column, token, caption, how much of the
    flow is drawn and which next word is explained: "matrix weights 12 3 5 2 5 -1 3 -1".
    """
    parts = text.split(" ")
    if len(parts) == 2 + len(_NUMBERS) - len(_FIRST):
        parts += map(str, _FIRST.values())
    if len(parts) != 2 + len(_NUMBERS) or parts[0] not in _LEVELS or parts[1] not in _MATRICES:
        return None
    if not all(re.fullmatch(r"-1|\d{1,4}", part) for part in parts[2:]):
        return None
    numbers = dict(zip(_NUMBERS, map(int, parts[2:]), strict=True))
    if any(numbers[name] > most for name, most in _MOST.items()) or numbers["detail"] < 0:
        return None
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


def open_there(text: str, passed: OnePass, layer: int, head: int) -> Place | None:
    """The place that an address names, if the pass has it and this layer and head are open."""
    place = place_of(text)
    if place is None or not is_in(place, passed):
        return None
    return place if (place["layer"], place["head"]) == (layer, head) else None


def led(text: str, layer: int, head: int) -> str:
    """The place that an address names, at this layer and head if a story is told there.

    Whoever chooses another head in the settings hears the same caption of that head.
    """
    place = place_of(text)
    if place is None or int(place["told"]) < 0:
        return text
    return written({**place, "layer": layer, "head": head})


def written(place: Place) -> str:
    """The place as the address writes it."""
    return " ".join(str(place[part]) for part in ("level", "matrix", *_NUMBERS))
