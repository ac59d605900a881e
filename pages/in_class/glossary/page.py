"""Glossary: every term of the site in a sentence or two, with the lesson that teaches it."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

import streamlit as st

from serving import parameters
from ui.frame.glossary.terms import Term, glossary
from ui.frame.sections import TITLES
from ui.widgets import messages
from ui.widgets.linked import linked
from ui.widgets.parts import parts
from ui.widgets.visit import page_view

MAX_CHARACTERS = 60  # of what is searched for
OPENED = "glossary_opened"  # in the session: the term of the address that was opened last, and when


def cards(terms: Sequence[Term], opened: Term | None) -> str:
    """The HTML of these terms. opened: the one that the address names, which comes first."""
    first = sorted(terms, key=lambda term: term != opened)
    return f'<ul class="glossary">{"".join(_card(term, term == opened) for term in first)}</ul>'


def _card(term: Term, is_opened: bool) -> str:
    name, title = escape(term.name), escape(TITLES[term.page])
    return (
        f"<li class={'opened' if is_opened else 'term'}>"
        f"<h2>{name}</h2><p>{escape(term.sentence)}</p>"
        f'<a href="{parameters.address(term.page)}" data-inside '
        f'aria-label="{name}: learn it on the page {title}">{title}</a></li>'
    )


words = glossary(frozenset(TITLES))
wanted = st.query_params.get("term", "")
opened = words.named(wanted)
if opened and st.session_state.get(OPENED) != (page_view().number, wanted):
    st.session_state[OPENED] = (page_view().number, wanted)
    st.session_state["glossary_part"] = opened.part

st.title("Glossary")
st.markdown(
    f"The {len(words.terms)} terms of these pages, each in a sentence or two. Other pages "
    "underline them with dots: click or tap one to read its definition."
)
text = linked(
    st.text_input,
    "Search the glossary",
    "",
    key="find",
    max_chars=MAX_CHARACTERS,
    placeholder="Search",
    icon=":material/search:",
    label_visibility="collapsed",
)
if wanted and opened is None:
    messages.problem(f"No word of the glossary is “{wanted}”. Search for a part of it.")
if text.strip():
    shown = words.with_text(text)
    if not shown:
        messages.problem(f"No entry holds “{text}”. Try a shorter word, or empty the field.")
else:
    chosen = parts("glossary_part", words.parts)
    shown = tuple(term for term in words.terms if term.part in chosen)
if shown:
    st.html(Path(__file__).with_name("cards.css"))
    st.html(cards(shown, opened))
