"""The four cards on Home: Learn, Compare heads, KV cache, Generate."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from ui.frame import sections

_PICTURES = Path(__file__).parent / "pictures"


@dataclass(frozen=True)
class EntryCard:
    """A card that opens a page. page: the page's folder; picture: the name of an SVG file."""

    page: str
    title: str
    description: str
    picture: str


ENTRY_CARDS = (
    EntryCard(
        "learn/tokens",
        "Learn",
        "Build attention step by step, starting from a dot product.",
        "learn",
    ),
    EntryCard(
        "compare/heads", "Compare heads", "See what every head of a model looks at.", "heads"
    ),
    EntryCard(
        "kv_cache/what_is_recomputed",
        "KV cache",
        "See what the model only has to compute once.",
        "cache",
    ),
    EntryCard(
        "generate/generate", "Generate", "Watch a race with and without the KV cache.", "generate"
    ),
)


def entry_cards() -> None:
    """Show the cards next to each other, or stacked on a phone."""
    for column, door in zip(st.columns(len(ENTRY_CARDS), gap="medium"), ENTRY_CARDS, strict=True):
        card = f"home_card_{door.picture}"
        with column, st.container(border=True, height="stretch", gap="xsmall", key=card):
            st.page_link(sections.script(door.page), label=f"**{door.title}**")
            st.html(_image(door.picture))
            st.markdown(f":small[{door.description}]")


def _image(name: str) -> str:
    """An <img> of one of our SVG files. Its alt is empty because the link already says it."""
    data = base64.b64encode((_PICTURES / f"{name}.svg").read_bytes()).decode()
    return f'<img alt="" src="data:image/svg+xml;base64,{data}" style="width: 100%">'
