"""Checks of model names: plain folder names and Hub ids."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?")


def check_hub_id(hub_id: str) -> str:
    """Return `hub_id` if it has the form `organization/name`; raise ValueError otherwise."""
    parts = hub_id.split("/")
    if len(parts) != 2 or not all(_NAME.fullmatch(part) for part in parts):
        raise ValueError(
            f"{hub_id!r} isn't a Hub id, which has the form organization/name. To use a local "
            "model, put its folder into ATTENTION_LAB_MODELS and enter the folder's name."
        )
    if ".." in hub_id or "--" in hub_id:
        raise ValueError(f"{hub_id!r} isn't a Hub id, because it contains '..' or '--'.")
    return hub_id


def check_name(name: str) -> str:
    """Return `name` if it's a plain folder name or a Hub id; raise ValueError otherwise."""
    if not isinstance(name, str):
        raise ValueError(f"A model name must be a string, not {type(name).__name__}.")
    if "/" in name:
        return check_hub_id(name)
    if not _NAME.fullmatch(name) or ".." in name:
        raise ValueError(
            f"{display_name(name)} isn't a valid model name. Names consist of letters, digits, "
            "'.', '_' "
            "and '-'."
        )
    return name


def display_name(name: str) -> str:
    """`name` in quotes for a message, cut off after 60 characters."""
    return repr(name if len(name) <= 60 else f"{name[:60]}…")
