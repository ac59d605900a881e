"""The row of tools for teachers below every page: projector view and embeddable pictures.

The frame's scripts do the rest (`projector.js`, `embedding.js`). An embedded picture reads its
caption from this row (`picture_embed.js`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from pretrained import settings

EMBED_VARIABLE = settings.EMBED.name
MAX_SENTENCE_CHARACTERS = 200  # of the sentence in a picture's caption

NOBODY = (
    "Other sites can't show pictures from this site yet. To allow it, ask the site's administrator "
    f"to set {EMBED_VARIABLE} to the address of your course page, such as "
    "https://moodle.example.org, and restart the site."
)
SOME = f"Only the sites listed in {EMBED_VARIABLE} can show it: {{}}."
HOW = (
    "Paste this code into your course page. It shows the picture with the current settings and a "
    "link to this page. For a dark background, add &embed_options=dark_theme to the address in "
    "the code."
)


def row(facts: Mapping[str, str], embedding_sites: Sequence[str]) -> str:
    """The HTML of the row.

    facts: from `ui.canvas.component.picture_caption`; they may contain a visitor's text.
    embedding_sites: other sites that may embed this one.
    """
    note = SOME.format(" ".join(embedding_sites)) if embedding_sites else NOBODY
    return (
        f'<div class="in-class" data-facts="{escape(caption(facts))}">'
        '<a class="projector" href="?view=clean">Projector view</a>'
        "<details><summary>Embed a picture</summary>"
        f'<div class="embedding"></div><p>{escape(HOW)}</p><p>{escape(note)}</p></details></div>'
    )


def caption(facts: Mapping[str, str]) -> str:
    """A picture's caption: the model and the sentence, if the page has them."""
    parts = []
    if model := facts.get("model"):
        parts.append(f"Model: {model}.")
    if sentence := facts.get("sentence"):
        if len(sentence) > MAX_SENTENCE_CHARACTERS:
            sentence = sentence[: MAX_SENTENCE_CHARACTERS - 1] + "…"
        parts.append(f"Sentence: \u2068{sentence}\u2069")
    return " ".join(parts)
