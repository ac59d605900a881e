"""Ablate: switch heads off, see what changes, and rank all heads by it."""

import streamlit as st

from pages.compare.ablate import downloads, effect, pickers, runs, sections
from serving import models
from serving.heads import HeadId
from ui.export import source
from ui.widgets import controls, messages
from ui.widgets.head_choice import HeadChoice
from ui.widgets.head_links import head_links
from ui.widgets.settings import settings

st.title("Ablate")
st.markdown(
    "What does a head do for a prediction? Take it away and see what changes: "
    "one head, several, or every head in turn."
)

if not models.ready():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = pickers.text()
with right:
    entry = controls.model(pickers.MODEL, None, prefer="decoder")
try:
    with st.spinner("Loading the model …", show_time=True):
        n_tokens = runs.count(entry.spec.name, text)
except models.LOAD_ERRORS as error:
    messages.problem(error)
    messages.end_page()
heads = pickers.heads(entry.spec)
with right, settings():
    kind = pickers.kind()
    position = pickers.position(n_tokens)

try:
    question = runs.question(entry.spec.name, text, position)
    with st.spinner("Running the model twice …", show_time=True):
        changed = runs.effect(question, heads, kind)
except models.LOAD_ERRORS as error:
    messages.problem(error)
    messages.end_page()

st.text(effect.question_text(question))
effect.effect(question, changed)
effect.honest(question, changed, heads, kind)
if heads:
    place = HeadId.parse(heads[-1])
    choice = HeadChoice(entry, place.layer, place.head)
    st.markdown(f":small[{place} on other pages:]")
    head_links(choice, text, here="compare/ablate")

st.subheader("Every head, one at a time")
sections.refused()
sections.rank(question, heads, kind)

downloads.show(question, changed, heads, kind)

with st.expander("How to read this"):
    st.markdown(
        "- **Zero** removes what a head writes: the same as zeros in its rows of the output matrix "
        "$W_O$. No model was trained with a silent head, so part of the effect is the "
        "strange input to the layers after it. **Uniform** keeps the values and takes away the "
        "choice: every visible key gets the same weight. That is a smaller step away from what the "
        "layers after it know, yet not always a smaller effect: a head that rests on the first "
        "token and is made uniform writes where it wrote next to nothing. The line below the "
        "picture gives both.\n"
        "- **Divergence** is the Kullback-Leibler divergence of the predictions, with all heads "
        "on against heads off, in nats: 0 if nothing changed. The **top logit** is that of the "
        "token that was likeliest with all heads on. **Δ log p** is the change of a token's "
        "log-probability.\n"
        "- For an encoder without a masked-word head the **hidden states** after the last layer "
        "are compared, token by token: 1 − cosine for the direction, and the length of the "
        "difference over the length of the state.\n"
        "- An effect on one sentence is **not importance in general**. A head may matter for this "
        "text alone, and one without any effect may have a deputy that steps in. Effects need "
        "not add up; the line below the picture shows by how much.\n"
        "- In the grid a strongly coloured cell is a large effect; frames mark heads that are off. "
        "The colours are a square root: most effects are small beside the largest."
    )

with st.expander("The code that switched these heads off"):
    source.show("attention_core/analysis/ablation.py", "changed")
    source.step("attention_core/model/forward_pass.py", "_attend_edited", "recomputed")
    source.step("attention_core/attention.py", "MultiHeadAttention.forward", "context", "output")
    source.show("attention_core/analysis/ablation.py", "rank")
