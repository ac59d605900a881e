"""Links that open the same head on other pages."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pretrained import Tokens
from pretrained.tokenization.alignment import word_tokens
from serving.heads import HeadId
from ui.frame import sections
from ui.widgets.head_choice import HeadChoice


@dataclass(frozen=True)
class TokenPair:
    """A query and a key, as positions in a tokenized text."""

    tokens: Tokens
    query: int
    key: int

    def numbers(self) -> dict[str, str]:
        """Address parameters for pages that use token positions."""
        return {"query": str(self.query), "key": str(self.key)}

    def words(self) -> dict[str, str]:
        """Address parameters for "Word pairs"; empty if one of the tokens isn't part of a word."""
        query, key = (word_tokens(self.tokens, token) for token in (self.query, self.key))
        return {"query": query, "a": key} if query and key else {}


def head_links(
    choice: HeadChoice, text: str, *, current_page: str, pair: TokenPair | None = None
) -> None:
    """Show a row of links that open this head with this text on the other pages.

    current_page: the folder of the current page ("compare/heads"), which is left out. pair: the
    selected tokens.
    """
    numbers, words = (pair.numbers(), pair.words()) if pair else ({}, {})
    model, layer, head = choice.entry.spec.name, str(choice.layer), str(choice.head)
    name = str(HeadId(choice.layer, choice.head))
    whole = {"text": text, "model": model, "layer": layer, "head": head}
    # folder -> (link label, address parameters without the page's prefix)
    pages = {
        "start/one_pass": ("One pass", whole),
        "compare/heads": ("All heads", whole | numbers),
        "compare/side_by_side": (
            "Compare",
            {"text": text, "a_model": model, "a_layer": layer, "a_head": head} | numbers,
        ),
        "compare/ablate": ("Ablate", {"text": text, "model": model, "heads": name}),
        "compare/word_pairs": ("Word pairs", {"text": text, "model": model} | words),
        "learn/shapes": (
            "Step through",
            # step 6 is the first one that shows each head separately
            {"words": text, "of": model, "layer": layer, "head": head, "step": "6"},
        ),
    }
    with st.container(horizontal=True, gap="small"):
        for folder, (label, parameters) in pages.items():
            if folder != current_page:
                prefix = folder.rpartition("/")[2]
                st.page_link(
                    sections.script(folder),
                    label=label,
                    icon=sections.ICONS[folder],
                    query_params={f"{prefix}_{key}": value for key, value in parameters.items()},
                )
