"""From two networks to one: an encoder, a decoder, and the attention between them."""

import streamlit as st

from pages.learn.two_networks import sections
from pages.learn.two_networks.questions import questions
from pages.learn.two_networks.translated import (
    FIRST,
    MEAN,
    N_HEADS,
    N_LAYERS,
    N_WRITTEN,
    translated,
)
from ui.canvas.component import about
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.parts import heading, parts
from ui.widgets.quiz import quiz
from ui.widgets.settings import settings

TEXT = "two_networks_text"
EXAMPLES = (FIRST, "december 24, 2026", "the 21st of september 2004", "9 jul 1912")


def take(example: str) -> None:
    """Make an example the text."""
    st.session_state[TEXT] = example


st.title("From two networks to one")
st.markdown(
    "The first networks with attention were pairs. An **encoder** reads a text, a **decoder** "
    "writes the answer. Without attention, all that was read must fit into one vector. With it, "
    "the decoder **looks back** at every symbol: **cross-attention**."
)
left, right = controls.row()
with left, st.container(horizontal=True, vertical_alignment="bottom"):
    text = linked(
        st.text_input,
        "A date in English",
        FIRST,
        key=TEXT,
        max_chars=80,
        label_visibility="collapsed",
    )
    controls.menu_of_examples(EXAMPLES, f"{TEXT}_example", take)
about()["sentence"] = text
with right, settings():
    layer = controls.number("Layer", "two_networks_layer", N_LAYERS, 1)
    heads = [MEAN, *(f"H{number}" for number in range(N_HEADS))]
    chosen = linked(st.selectbox, "Head", heads, key="two_networks_head")
    symbol = controls.number("Symbol of the answer (a row)", sections.SYMBOL, N_WRITTEN, 6)
head = None if chosen == MEAN else heads.index(chosen) - 1
try:
    translation = translated(text)
except ValueError as error:
    messages.problem(error)
    messages.end_page()

st.markdown(
    f"The encoder read `{len(translation.labels)}` symbols. The decoder wrote "
    f"**{translation.answer}**"
    + (
        ". This text is **no date** from 1900 to 2099 in a form that the translator learned. It "
        "knows nothing but dates, so it writes one all the same."
        if translation.expected is None
        else ", and that is right."
        if translation.expected == translation.answer
        else f". That is **wrong**: it should be {translation.expected}."
    )
)
sections.looking_back(translation, layer, head, symbol)
of_a_date = (
    "the year is written first and mostly stands last in the text, so most of the first four rows "
    "look at its end. The month of the answer is a number; its rows look at the month's letters. "
)
st.markdown(
    f"**To notice**: {of_a_date if translation.expected is not None else ''}"
    "Languages, too, put their words in different orders. A translation cannot go word by word, so "
    "one network reads the whole text before the other writes."
)

shown = parts("two_networks_part", sections.PARTS)
if sections.ATTENTIONS in shown:
    heading(sections.ATTENTIONS, shown)
    sections.three_attentions(translation, layer, head)
if sections.ONE_VECTOR in shown:
    heading(sections.ONE_VECTOR, shown)
    sections.one_vector(translation)
if sections.LEFT in shown:
    heading(sections.LEFT, shown)
    sections.what_is_left()

with st.expander("How to read this"):
    st.markdown(
        "- A **row** is a symbol that is written, a **column** one that was read. The weights of a "
        "row sum to 1. Click a row to read it; `␣` is a space.\n"
        "- This **translator** is small: two layers a network, four heads, 64 numbers a symbol. It "
        "was trained for a few minutes on random dates; the dates of every tenth day were kept "
        "back.\n- **Bahdanau** (2014) scored a pair by a small network, v · tanh(W q + U k), in "
        "recurrent networks. **Vaswani** (2017) took the dot product q · k / √d and left the "
        "recurrence out. This translator is of the second kind."
    )
quiz("two_networks", questions, translation)
