"""Locations in the picture of one pass, as encoded in URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from serving.one_pass import N_DRAWN, N_STRIP, OnePass

_LEVELS = ("whole", "layer", "head", "matrix")
_MATRICES = ("q", "k", "scores", "scaled", "weights", "v", "context", "added")
_NUMBERS = ("layer", "head", "row", "column", "token", "told", "detail", "why")
_FIRST = {"detail": 3, "why": -1}  # defaults for older links without these fields
_MAX_NUMBERS = {"detail": 6, "why": N_DRAWN - 1}
Location = Mapping[str, str | int]


def parse_location(text: str) -> Location | None:
    """Parse a location from a URL, or return None for invalid text.

    The fields are level, matrix, and the indices of layer, head, row, column, token, caption,
    detail (how much of the flow is drawn) and the next word being explained. For example,
    "matrix weights 12 3 5 2 5 -1 3 -1".
    """
    parts = text.split(" ")
    if len(parts) == 2 + len(_NUMBERS) - len(_FIRST):
        parts += map(str, _FIRST.values())
    if len(parts) != 2 + len(_NUMBERS) or parts[0] not in _LEVELS or parts[1] not in _MATRICES:
        return None
    if not all(re.fullmatch(r"-1|\d{1,4}", part) for part in parts[2:]):
        return None
    numbers = dict(zip(_NUMBERS, map(int, parts[2:]), strict=True))
    if any(numbers[name] > most for name, most in _MAX_NUMBERS.items()) or numbers["detail"] < 0:
        return None
    return {"level": parts[0], "matrix": parts[1], **numbers}


def exists_in(place: Location, one_pass: OnePass) -> bool:
    """Whether the location exists in this pass; a shorter text or smaller model may lack it."""
    n_layers, n_heads, n_tokens, size = one_pass.run.q.shape
    columns = {"scores": n_tokens, "scaled": n_tokens, "weights": n_tokens, "added": N_STRIP}
    limits = {
        "layer": n_layers,
        "head": n_heads,
        "row": n_tokens,
        "column": columns.get(str(place["matrix"]), size),
        "token": n_tokens,
    }
    return all(0 <= int(place[name]) < limit for name, limit in limits.items())


def open_location(text: str, one_pass: OnePass, layer: int, head: int) -> Location | None:
    """The location from a URL, if the pass has it and its layer and head are open."""
    place = parse_location(text)
    if place is None or not exists_in(place, one_pass):
        return None
    return place if (place["layer"], place["head"]) == (layer, head) else None


def resolve_location(text: str, layer: int, head: int) -> str:
    """The location from a URL, moved to this layer and head during the tour.

    If the visitor selects another head in the settings, the same caption is shown for that head.
    """
    place = parse_location(text)
    if place is None or int(place["told"]) < 0:
        return text
    return format_location({**place, "layer": layer, "head": head})


def format_location(place: Location) -> str:
    """Encode a location for a URL."""
    return " ".join(str(place[part]) for part in ("level", "matrix", *_NUMBERS))
