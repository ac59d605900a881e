"""Position: attention ignores word order, and three ways to fix that."""

import streamlit as st

from pages.learn.position import permutation, sections
from pages.learn.position.questions import questions
from pages.learn.position.sections import LEARNED, LONGER, ROTARY, SINUSOIDS
from serving import models
from serving.limits import MAX_SMALL_TOKENS
from ui.canvas.tensors import tensors
from ui.export import source
from ui.text.formatting import format_number
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.quiz import quiz
from ui.widgets.section_picker import section_heading, section_picker
from ui.widgets.settings import settings

ORDER = "pages/learn/position/experiment/order.py"
DOG = "dog bites man"

st.title("Position")
st.markdown(
    "Attention doesn't know the order of the words: “dog bites man” and “man bites dog” are the "
    "same to it. So a model needs **position information**."
)

entry, text = None, DOG
if not models.available():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
else:
    left, right = controls.row()
    with left:
        text = controls.text(
            "Text", "position_text", DOG, examples=(DOG, "man bites dog", *controls.SENTENCES)
        )
    with right:
        entry = controls.model("position_model", None, prefer="encoder")
    with right, settings():
        how = linked(st.radio, "New order of the tokens", permutation.ORDERS, key="position_order")
        of_window = st.container()
    try:
        with st.spinner(f"Loading {entry.spec.title} …", show_time=True):
            n_tokens = permutation.n_tokens(entry.spec.name, text)
        with of_window:
            as_what = "with the first of them at position 0"
            first = controls.window("position_first", n_tokens, MAX_SMALL_TOKENS, as_what)
        found = permutation.two_orders(entry.spec.name, text, first, how)
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
    else:
        given = linked(
            st.segmented_control,
            "Attention of layer 0",
            list(found.panels),
            default=permutation.WITHOUT,
            required=True,
            key="position_given",
            label_visibility="collapsed",
        )
        left, right = st.columns([2, 1], gap="medium")
        with left:
            tensors(found.panels[given], key="position_orders")
        with right:
            st.markdown(
                "Each column shows one token's attention output in layer 0. **Without positions** "
                "the new order changes it by at most "
                f"{format_number(found.changes[permutation.WITHOUT], '.1e')}, which is rounding. "
                "**With "
                f"positions** it changes by up to "
                f"{format_number(found.changes[permutation.WITH], '.2g')}, "
                "and the largest number in the whole output is "
                f"{format_number(found.largest[permutation.WITH], '.2g')}."
            )
            with st.expander("The code"):
                source.show_lines(ORDER, "compare_orders", "rotation", "output")

shown = section_picker("position_part", (SINUSOIDS, LEARNED, ROTARY, LONGER))
if SINUSOIDS in shown:
    section_heading(SINUSOIDS, shown)
    sections.show_sinusoids()
if LEARNED in shown:
    section_heading(LEARNED, shown)
    sections.show_learned(entry)
if ROTARY in shown or LONGER in shown:
    section_heading(ROTARY if ROTARY in shown else LONGER, shown)
    vectors = sections.chosen_vectors(entry, text)
    if vectors is not None and ROTARY in shown:
        sections.show_rotary(vectors)
    if vectors is not None and LONGER in shown:
        if ROTARY in shown:
            section_heading(LONGER, shown)
        sections.show_longer(vectors)

quiz("position", questions)
