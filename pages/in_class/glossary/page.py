"""Glossary: every term of the site, said in a sentence or two, with a picture and its lesson."""

import streamlit as st

from pages.in_class.glossary import cards
from ui.frame.glossary.terms import glossary
from ui.frame.sections import TITLES
from ui.widgets import messages
from ui.widgets.linked import linked
from ui.widgets.parts import parts
from ui.widgets.visit import page_view

MAX_CHARACTERS = 60  # of what is searched for
OPENED = "glossary_opened"  # in the session: the term of the address that was opened last, and when

words = glossary(frozenset(TITLES))
wanted = st.query_params.get("term", "")
opened = words.named(wanted)
if opened and st.session_state.get(OPENED) != (page_view().number, wanted):
    st.session_state[OPENED] = (page_view().number, wanted)
    st.session_state["glossary_part"] = opened.part

st.title("Glossary")
st.markdown(
    f"The {len(words.terms)} words of these pages, each in a sentence or two. On other pages they "
    "are underlined with dots: point at one, or tap it. :small[In a picture of a matrix a stronger "
    "cell is a larger number, and a hollow one is below 0.]"
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
    cards.show(shown, opened.name if opened else "", key="glossary_cards")
