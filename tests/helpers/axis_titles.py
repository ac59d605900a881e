"""Check that the charts on a page label their rows, columns and axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def unnamed_axes(part: dict[str, Any]) -> Iterator[str]:
    """Yield the position channels of a Vega-Lite chart whose axis has no title.

    Without an explicit title Vega-Lite uses the field's name. Layers that share an axis also share
    its title.
    """
    for name in ("x", "y"):
        message = [
            channel for channel in _channels(part, name) if channel.get("axis", {}) is not None
        ]
        titles = [channel.get("title", channel.get("field")) for channel in message]
        if message and not any(titles):
            yield name


def _channels(part: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    channel = part.get("encoding", {}).get(name)
    if channel is not None and ("field" in channel or "title" in channel):
        yield channel
    for layer in part.get("layer", []):
        yield from _channels(layer, name)
