"""What stands below every page for a teacher: the view for a projector, a picture to embed.

The scripts of the frame do the rest (`projector.js`, `embedding.js`); a picture that is shown alone
reads here what it shows (`one_picture.js`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from pretrained import settings

EMBED_VARIABLE = settings.EMBED.name
MAX_SENTENCE_CHARACTERS = 200  # of the sentence in the caption of a picture

NOBODY = (
    "No other site may show a picture of this one yet. Whoever runs this site sets "
    f"{EMBED_VARIABLE} to the address of your course page, such as https://moodle.example.org, "
    "and starts it again."
)
SOME = f"Only the sites that {EMBED_VARIABLE} names may show it: {{}}."
HOW = (
    "The code shows one picture as this page shows it now, with a link to this page. Add "
    "&embed_options=dark_theme to its address for a dark page."
)


def row(facts: Mapping[str, str], embedding_sites: Sequence[str]) -> str:
    """The HTML of the row.

    facts: as of `ui.canvas.component.about`; they may hold a visitor's text. embedding_sites: the
    other sites that may show this one in a frame.
    """
    note = SOME.format(" ".join(embedding_sites)) if embedding_sites else NOBODY
    return (
        f'<div class="in-class" data-facts="{escape(caption(facts))}">'
        '<a class="projector" href="?view=clean">Projector view</a>'
        "<details><summary>Embed a picture</summary>"
        f'<div class="embedding"></div><p>{escape(HOW)}</p><p>{escape(note)}</p></details></div>'
    )


def caption(facts: Mapping[str, str]) -> str:
    """What a picture shows, in words: the model and the sentence, as far as the page has them."""
    said = []
    if model := facts.get("model"):
        said.append(f"Model: {model}.")
    if sentence := facts.get("sentence"):
        if len(sentence) > MAX_SENTENCE_CHARACTERS:
            sentence = sentence[: MAX_SENTENCE_CHARACTERS - 1] + "…"
        said.append(f"Sentence: \u2068{sentence}\u2069")
    return " ".join(said)
