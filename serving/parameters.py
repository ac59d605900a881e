"""The address of a page."""

from __future__ import annotations


def address(folder: str) -> str:
    """The address of the page in a folder of `pages/`: "learn/two_networks" has "two-networks"."""
    return folder.rpartition("/")[2].replace("_", "-")
