"""Names of models that may be looked for: plain folder names, and ids of the hub."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?")


def check_hub_id(hub_id: str) -> str:
    """`hub_id` unchanged when it is a plain `organisation/name`; ValueError otherwise."""
    parts = hub_id.split("/")
    if len(parts) != 2 or not all(_NAME.fullmatch(part) for part in parts):
        raise ValueError(f"{hub_id!r} is no hub name; it has to look like organisation/name.")
    if ".." in hub_id or "--" in hub_id:
        raise ValueError(f"{hub_id!r} is no hub name; '..' and '--' are not allowed.")
    return hub_id


def check_name(name: str) -> str:
    """`name` unchanged when it is a plain folder name or a hub id; ValueError otherwise."""
    if not isinstance(name, str):
        raise ValueError(f"A model name is a string, not {type(name).__name__}.")
    if "/" in name:
        return check_hub_id(name)
    if not _NAME.fullmatch(name) or ".." in name:
        raise ValueError(f"{shown(name)} is no model name; letters, digits, '.', '_' and '-' only.")
    return name


def shown(name: str) -> str:
    """`name` in quotes for a message, cut after 60 characters."""
    return repr(name if len(name) <= 60 else f"{name[:60]}…")
