"""Links that open a head on the other pages that show one."""

from __future__ import annotations

import streamlit as st

from pretrained import Tokens
from pretrained.tokenization.alignment import word_of
from serving.heads import HeadId
from ui.frame import sections
from ui.widgets.controls import HeadChoice


def head_links(
    choice: HeadChoice, text: str, *, here: str, pair: tuple[Tokens, int, int] | None = None
) -> None:
    """A row of links to this head on this text, one for each other page.

    here: the folder of the page on which they stand ("compare/heads"): it gets no link to itself.
    pair: the tokens of the text, and which of them is looked from and which is looked at.
    """
    numbers, words = {}, {}
    if pair is not None:
        tokens, query, key = pair
        numbers = {"query": str(query), "key": str(key)}
        looks, at = word_of(tokens, query), word_of(tokens, key)
        if looks and at:
            words = {"query": looks, "a": at}
    model, layer, head = choice.entry.spec.name, str(choice.layer), str(choice.head)
    name = str(HeadId(choice.layer, choice.head))
    # what the link says, and the parameters of the page's address without their prefix
    pages = {
        "compare/heads": (
            "All heads",
            {"text": text, "model": model, "layer": layer, "head": head} | numbers,
        ),
        "compare/side_by_side": (
            "Compare",
            {"text": text, "a_model": model, "a_layer": layer, "a_head": head} | numbers,
        ),
        "compare/ablate": ("Ablate", {"text": text, "model": model, "heads": name}),
        "compare/word_pairs": ("Word pairs", {"text": text, "model": model} | words),
        "learn/shapes": ("Step through", {"words": text, "of": model, "layer": layer}),
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
