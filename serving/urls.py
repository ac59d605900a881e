"""The addresses of pages."""

from __future__ import annotations


def page_path(folder: str) -> str:
    """The address of a page from its folder in `pages/`: "learn/two_networks" -> "two-networks"."""
    return folder.rpartition("/")[2].replace("_", "-")
