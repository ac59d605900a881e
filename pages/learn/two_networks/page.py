"""The page "From two networks to one": encoder, decoder and cross-attention."""

import streamlit as st

from pages.learn.two_networks import sections
from pages.learn.two_networks.questions import questions
from pages.learn.two_networks.translation import (
    FIRST,
    MEAN,
    N_ANSWER_SYMBOLS,
    N_HEADS,
    N_LAYERS,
    translate_date,
)
from ui.canvas.component import picture_caption
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.quiz import quiz
from ui.widgets.section_picker import section_heading, section_picker
from ui.widgets.settings import settings

TEXT = "two_networks_text"
EXAMPLES = (FIRST, "december 24, 2026", "the 21st of september 2004", "9 jul 1912")


def use_example(example: str) -> None:
    """Copy an example into the text box."""
    st.session_state[TEXT] = example


st.title("From two networks to one")
st.markdown(
    "**Cross-attention** lets a network that writes look back at everything another network has "
    "read. Here an **encoder** reads a date, and a **decoder** rewrites it as numbers. Without "
    "attention, the whole text would have to fit into one vector."
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
    controls.example_menu(EXAMPLES, f"{TEXT}_example", use_example)
picture_caption()["sentence"] = text
with right, settings():
    layer = controls.number("Layer", "two_networks_layer", N_LAYERS, 1)
    heads = [MEAN, *(f"H{number}" for number in range(N_HEADS))]
    chosen = linked(st.selectbox, "Head", heads, key="two_networks_head")
    symbol = controls.number("Answer symbol (row)", sections.SYMBOL, N_ANSWER_SYMBOLS, 6)
head = None if chosen == MEAN else heads.index(chosen) - 1
try:
    translation = translate_date(text)
except ValueError as error:
    messages.show_problem(error)
    messages.end_page()

st.markdown(
    f"The encoder read {len(translation.labels)} symbols, and the decoder wrote "
    f"**{translation.answer}**. {sections.verdict(translation)}"
)
sections.cross_attention(translation, layer, head, symbol)
of_a_date = (
    "The answer starts with the year, but your text ends with it, so most of the first four rows "
    "attend to the end of the text. The rows of the month attend to the letters of its name. "
)
st.markdown(
    f"{of_a_date if translation.expected is not None else ''}"
    "Languages also differ in word order. You can't translate word by word, so one network reads "
    "the whole text before the other starts to write."
)

shown = section_picker("two_networks_part", sections.PARTS)
if sections.ATTENTIONS in shown:
    section_heading(sections.ATTENTIONS, shown)
    sections.three_attentions(translation, layer, head)
if sections.ONE_VECTOR in shown:
    section_heading(sections.ONE_VECTOR, shown)
    sections.one_vector(translation)
if sections.SURVIVORS in shown:
    section_heading(sections.SURVIVORS, shown)
    sections.surviving_parts()

with st.expander("How to read this"):
    st.markdown(
        "- Each **row** is a symbol that the decoder writes, and each **column** is a symbol that "
        "the encoder read. The weights of a row sum to 1. Click a row to see its weights; `␣` is "
        "a space.\n"
        "- The **translator** is small: each network has two layers with four heads, and each "
        "symbol is a vector of 64 numbers. It was trained for a few minutes on random dates, but "
        "never on one of every ten days.\n"
        "- **Bahdanau et al.** (2014) added attention to recurrent networks and computed scores "
        "with a small network, v · tanh(W q + U k). **Vaswani et al.** (2017) dropped the "
        "recurrence and used the dot product q · k / √d. This translator uses the dot product."
    )
quiz("two_networks", questions, translation)
