"""The table of contents: each page's folder (which determines its address), title and icon."""

from __future__ import annotations

from copy import copy
from functools import cache
from pathlib import Path

import streamlit as st

from serving import urls

ROOT = Path(__file__).parents[2]
SITE = "Attention Lab"

# heading in the navigation -> (folder in pages/, title, icon)
SECTIONS = {
    "": [("start/home", SITE, "home"), ("start/one_pass", "One pass", "route")],
    "Learn": [
        ("learn/tokens", "Tokens", "match_word"),
        ("learn/why_attention", "Why attention", "conversion_path"),
        ("learn/similarity", "Similarity", "join_inner"),
        ("learn/ladder", "Ladder", "stairs"),
        ("learn/scaling", "Scaling", "square_foot"),
        ("learn/masking", "Masking and dropout", "visibility_off"),
        ("learn/why_several_heads", "Why several heads", "call_split"),
        ("learn/shapes", "Shapes", "deployed_code"),
        ("learn/against_pytorch", "Against PyTorch", "balance"),
        ("learn/position", "Position", "pin_drop"),
        ("learn/attention_without_the_matrix", "Attention without the matrix", "grid_view"),
        ("learn/block", "Block", "stacks"),
        ("learn/two_networks", "From two networks to one", "join_full"),
        ("learn/who_sets_the_weights", "Who sets the weights", "trending_down"),
        ("learn/watch_heads_form", "Watch heads form", "motion_play"),
        ("learn/cheaper_models", "Cheaper models", "savings"),
    ],
    "Compare": [
        ("compare/heads", "Heads", "grid_on"),
        ("compare/side_by_side", "Side by side", "compare"),
        ("compare/ablate", "Ablate", "content_cut"),
        ("compare/word_pairs", "Word pairs", "link"),
        ("compare/generated_tokens", "Generated tokens", "history_edu"),
    ],
    "KV cache": [
        ("kv_cache/what_is_recomputed", "What is recomputed", "replay"),
        ("kv_cache/inside_the_cache", "Inside the cache", "memory"),
        ("kv_cache/timing", "Timing", "timer"),
        ("kv_cache/variants", "Variants", "account_tree"),
        ("kv_cache/calculator", "Calculator", "calculate"),
    ],
    "Generate": [("generate/generate", "Generate", "bolt")],
    "Weights": [("weights/models", "Models", "database")],
    "For a class": [
        ("teaching/glossary", "Glossary", "dictionary"),
        ("teaching/exercise_sheet", "Exercise sheet", "print"),
    ],
}

TITLES = {page: title for part in SECTIONS.values() for page, title, _ in part}
# folder in pages/ -> icon in Streamlit's format
ICONS = {page: f":material/{icon}:" for part in SECTIONS.values() for page, _, icon in part}


def tab_title(page: st.Page) -> str:
    """The title of the browser tab, such as "Scaling · Attention Lab"."""
    return page.title if page.title == SITE else f"{page.title} · {SITE}"


def script(folder: str) -> str:
    """The path of a page's script, as `st.page_link` takes it: "learn/ladder" -> ".../page.py"."""
    return str(ROOT / "pages" / folder / "page.py")


@cache
def _page(folder: str, title: str) -> st.Page:
    """The page of a folder, cached because Streamlit reads the disk whenever it creates a page."""
    address = urls.page_path(folder)
    home = folder == "start/home"
    return st.Page(script(folder), title=title, icon=ICONS[folder], url_path=address, default=home)


def pages() -> dict[str, list[st.Page]]:
    """The pages by section. They're copies, because each run marks its own current page."""
    return {
        heading: [copy(_page(folder, title)) for folder, title, _ in entries]
        for heading, entries in SECTIONS.items()
    }


def page_url(url: str) -> str:
    """A page's full URL without parameters, computed from `st.context.url`.

    Streamlit strips a page's path from the end of the URL and appends the right one. Sometimes it
    strips too little: "tokens" from "https://lab.example.org/generated-tokens" leaves "generated-".
    """
    before, _, page = url.partition("?")[0].rpartition("/")
    left_over = before.rpartition("/")[2]
    if left_over and any(left_over + urls.page_path(folder) == page for folder in TITLES):
        before = before.rpartition("/")[0]
    return f"{before}/{page}" if before else page
