"""Whether the pictures of a page say what their rows, columns and axes are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def unnamed_axes(part: dict[str, Any]) -> Iterator[str]:
    """The position channels of a Vega-Lite chart whose axis is drawn without a title.

    Without a word about it Vega-Lite writes the name of the field; layers that draw the same axis
    share its title.
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
