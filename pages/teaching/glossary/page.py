"""Glossary: a short definition of every term, with a link to the page that teaches it."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

import streamlit as st

from serving import urls
from ui.frame.glossary.terms import Term, glossary
from ui.frame.sections import TITLES
from ui.widgets import messages
from ui.widgets.linked import linked
from ui.widgets.section_picker import section_picker
from ui.widgets.visit import page_view

MAX_CHARACTERS = 60  # in a search
OPENED = "glossary_opened"  # session key: the page view and term that a link opened last


def cards(terms: Sequence[Term], opened: Term | None) -> str:
    """The HTML cards of these terms. opened: the term in the address, which comes first."""
    first = sorted(terms, key=lambda term: term != opened)
    return f'<ul class="glossary">{"".join(_card(term, term == opened) for term in first)}</ul>'


def _card(term: Term, is_opened: bool) -> str:
    name, title = escape(term.name), escape(TITLES[term.page])
    return (
        f"<li class={'opened' if is_opened else 'term'}>"
        f"<h2>{name}</h2><p>{escape(term.sentence)}</p>"
        f'<a href="{urls.page_path(term.page)}" data-inside '
        f'aria-label="{name}: learn it on the page {title}">{title}</a></li>'
    )


words = glossary(frozenset(TITLES))
wanted = st.query_params.get("term", "")
opened = words.find(wanted)
if opened and st.session_state.get(OPENED) != (page_view().number, wanted):
    st.session_state[OPENED] = (page_view().number, wanted)
    st.session_state["glossary_part"] = opened.part

st.title("Glossary")
st.markdown(
    f"Look up any of the {len(words.terms)} terms used on this site. On the other pages, terms "
    "have a dotted underline: click or tap one to see its definition."
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
    messages.show_problem(
        f"The glossary has no entry for “{wanted}”. Try searching for part of it."
    )
if text.strip():
    shown = words.search(text)
    if not shown:
        messages.show_problem(
            f"No entry contains “{text}”. Try a shorter word or clear the search."
        )
else:
    chosen = section_picker("glossary_part", words.parts)
    shown = tuple(term for term in words.terms if term.part in chosen)
if shown:
    st.html(Path(__file__).with_name("cards.css"))
    st.html(cards(shown, opened))
