"""The page "Why several heads": one head has to average what two heads can keep apart."""

import streamlit as st

from pages.learn.why_several_heads.questions import questions
from pages.learn.why_several_heads.sections import (
    chosen_layer,
    chosen_token,
    division,
    in_code,
    losses_section,
    maps,
    one_token,
    price,
)
from pages.learn.why_several_heads.two_heads import two_heads
from serving import models, runs
from serving.limits import MAX_SEVERAL_HEADS_TOKENS
from ui.widgets import controls, messages
from ui.widgets.head_choice import HeadChoice
from ui.widgets.head_links import head_links
from ui.widgets.quiz import quiz
from ui.widgets.section_picker import section_heading, section_picker
from ui.widgets.settings import settings

COST, LABOUR = "What a head costs", "Division of labour"
ALONE, CODE = "Left with one head", "The split in code"
# The default layer and heads: on the lecture's sentence, the first head leads from “brush” to
# “painted”, and the second to “woman”.
FIRST = {"decoder": (9, 4, 1), "encoder": (3, 7, 11)}

st.title("Why several heads")
st.markdown(
    "“The artist painted the portrait of a woman with a brush”: who has the brush? One head gives "
    "each token a single row of weights that sum to 1, so it can only mix the two readings. "
    "**Two heads can keep both.**"
)
if not models.available():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = controls.text("Text", "why_several_heads_text", controls.ARTIST)
with right:
    entry = controls.model("why_several_heads_model", None, prefer="decoder")
n_heads = entry.spec.n_heads
first_layer, first_head, first_other = FIRST[entry.spec.role]
with right, settings():
    layer = controls.number(
        "Layer", "why_several_heads_layer", entry.spec.n_layers, first_layer, part="layer"
    )
    head = controls.number("First head", "why_several_heads_head", n_heads, first_head, part="head")
    other = controls.number(
        "Second head",
        "why_several_heads_other",
        n_heads,
        first_other if head != first_other else first_head,
    )
    of_token = st.container()
choice = HeadChoice(entry, layer, head)
try:
    with st.spinner("Running the model …", show_time=True):
        run = runs.run(entry.spec.name, text, MAX_SEVERAL_HEADS_TOKENS, "this page")
        heads = two_heads(run, layer, (head, other))
except models.LOAD_ERRORS as error:
    messages.show_problem(error)
    messages.end_page()
with of_token:
    token = chosen_token(run)

maps(heads, token)
one_token(heads, (head, other), token)

shown = section_picker("why_several_heads_part", (COST, LABOUR, ALONE, CODE))
if COST in shown:
    section_heading(COST, shown)
    price(run, layer)
if LABOUR in shown or ALONE in shown:
    compared = chosen_layer(run)
if LABOUR in shown:
    section_heading(LABOUR, shown)
    division(run, compared)
if ALONE in shown:
    section_heading(ALONE, shown)
    losses_section(run, compared)
if CODE in shown:
    section_heading(CODE, shown)
    in_code(run, choice, text)

head_links(choice, text, current_page="learn/why_several_heads")
with st.expander("How to read this"):
    st.markdown(
        "- Each **row** is a query; click one to see its weights. Special tokens and a decoder's "
        "first token don't count as *other words*, because heads park unneeded attention there.\n"
        "- Two heads with maps A and B and values U and V (multiplied by W_O) output A·U + B·V. "
        "With the average of both heads, (A − B)(U − V) / 2 is lost. Nothing is lost if the maps "
        "or the values are equal. The **best single map** has the smallest error.\n"
        "- The **distance** of two maps is the share of its attention that one head would have to "
        "move to match the other.\n"
        "- In an image network, one filter finds edges and another finds spots. Heads divide the "
        "work in the same way. Nobody assigns a head its **job**; only the loss shapes it.\n"
    )
quiz("why_several_heads", questions, run, layer, heads)
