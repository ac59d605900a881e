"""The entries of the glossary as cards, which the browser draws."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from ui.canvas import component
from ui.frame.glossary.entries import entries
from ui.frame.glossary.terms import Term
from ui.frame.sections import TITLES

_FOLDER = Path(__file__).parent
_SIZES = Path(component.__file__).with_name("shared") / "scale.css"
_CSS = "".join(file.read_text(encoding="utf-8") for file in (_SIZES, _FOLDER / "cards.css"))
_mount = st.components.v2.component(
    "attention_glossary",
    html="<ul>\n</ul>",
    css=_CSS,
    js=(_FOLDER / "cards.js").read_text(encoding="utf-8"),
)


def show(terms: Sequence[Term], opened: str, *, key: str) -> None:
    """Show these terms. opened: the name of the one that is led to; none if it is empty."""
    says = "A box is a term: its name, one sentence, a picture, and the page that teaches it."
    data = {"says": says, "opened": opened, "entries": entries(terms, TITLES)}
    _mount(data=json.dumps(data).encode(), key=key, height="content")
