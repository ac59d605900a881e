"""Links that open a head on the other pages that show one."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pretrained import Tokens
from pretrained.tokenization.alignment import word_of
from serving.heads import HeadId
from ui.frame import sections
from ui.widgets.head_choice import HeadChoice


@dataclass(frozen=True)
class TokenPair:
    """A query and a key, by their positions in a text that a model has cut."""

    tokens: Tokens
    query: int
    key: int

    def numbers(self) -> dict[str, str]:
        """For the address of a page that counts tokens."""
        return {"query": str(self.query), "key": str(self.key)}

    def words(self) -> dict[str, str]:
        """For the address of the page "Word pairs"; empty where one of the tokens is in no word."""
        query, key = (word_of(self.tokens, token) for token in (self.query, self.key))
        return {"query": query, "a": key} if query and key else {}


def head_links(choice: HeadChoice, text: str, *, here: str, pair: TokenPair | None = None) -> None:
    """A row of links to this head on this text, one for each other page.

    here: the folder of the page on which they stand ("compare/heads"): it gets no link to itself.
    pair: which tokens of the text are looked at together there.
    """
    numbers, words = (pair.numbers(), pair.words()) if pair else ({}, {})
    model, layer, head = choice.entry.spec.name, str(choice.layer), str(choice.head)
    name = str(HeadId(choice.layer, choice.head))
    whole = {"text": text, "model": model, "layer": layer, "head": head}
    # what the link says, and the parameters of the page's address without their prefix
    pages = {
        "start/one_pass": ("Whole pass", whole),
        "compare/heads": ("All heads", whole | numbers),
        "compare/side_by_side": (
            "Compare",
            {"text": text, "a_model": model, "a_layer": layer, "a_head": head} | numbers,
        ),
        "compare/ablate": ("Ablate", {"text": text, "model": model, "heads": name}),
        "compare/word_pairs": ("Word pairs", {"text": text, "model": model} | words),
        "learn/shapes": (
            "Step through",
            # at the step in which each head stands alone for the first time
            {"words": text, "of": model, "layer": layer, "head": head, "step": "6"},
        ),
    }
    with st.container(horizontal=True, gap="small"):
        for folder, (label, parameters) in pages.items():
            if folder != here:
                prefix = folder.rpartition("/")[2]
                st.page_link(
                    sections.script(folder),
                    label=label,
                    icon=sections.ICONS[folder],
                    query_params={f"{prefix}_{key}": value for key, value in parameters.items()},
                )
