"""Ablate: switch heads off, see what changes, and rank all heads by their effect."""

import streamlit as st

from pages.compare.ablate import downloads, effect, pickers, runs, sections
from serving import models
from serving.heads import HeadId
from ui.export import source
from ui.widgets import controls, messages
from ui.widgets.head_choice import HeadChoice
from ui.widgets.head_links import head_links
from ui.widgets.placeholder import placeholder
from ui.widgets.settings import settings

st.title("Ablate")
claim_place = placeholder()

if not models.available():
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
    messages.show_problem(error)
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
    messages.show_problem(error)
    messages.end_page()

claim_place.text(effect.claim(question, changed, heads, len(runs.names(entry.spec))))
st.text(effect.describe_question(question))
effect.effect(question, changed)
effect.show_caveats(question, changed, heads, kind)
if heads:
    place = HeadId.parse(heads[-1])
    choice = HeadChoice(entry, place.layer, place.head)
    st.markdown(f":small[{place} on other pages:]")
    head_links(choice, text, current_page="compare/ablate")

st.subheader("Every head, one at a time")
sections.show_refusal()
sections.rank(question, heads, kind)

downloads.show(question, changed, heads, kind)

with st.expander("How to read this"):
    st.markdown(
        "- **Zero** removes the head's output, as if its rows of the output matrix $W_O$ were "
        "zero. The model was never trained with a silent head, so part of the effect comes from "
        "the unusual input to later layers. **Uniform** gives every visible key the same weight, "
        "so the head still outputs values but can't choose among them. That's usually the gentler "
        "change, but its effect can be larger. For example, a head that rests on the first token "
        "adds almost nothing; with uniform weights, it suddenly does. The line below the picture "
        "compares both.\n"
        "- **Divergence** is the Kullback-Leibler divergence between the predictions with and "
        "without these heads, in nats. It's 0 if nothing changed. The **top logit** is the logit "
        "of the token that was most likely with all heads on. **Δ log p** is the change in a "
        "token's log-probability.\n"
        "- An encoder without a masked-word head predicts nothing, so we compare its **hidden "
        "states** after the last layer, token by token: 1 − cosine measures the change of "
        "direction, and the relative distance is the length of the difference divided by the "
        "length of the state.\n"
        "- An effect on one sentence **doesn't make a head important in general**. A head may "
        "matter only for this text. A head without any effect may have a backup that takes over. "
        "Effects don't simply add up, either; the line below the picture shows by how much.\n"
        "- In the grid, a stronger color means a larger effect, and frames mark the heads that are "
        "off. Colors follow the square root of the effect, because most effects are small compared "
        "with the largest."
    )

with st.expander("The code that switched these heads off"):
    source.show("attention_core/analysis/ablation.py", "apply_changes")
    source.show_lines("attention_core/model/pass_context.py", "_attend_edited", "recomputed")
    source.show_lines(
        "attention_core/attention.py", "MultiHeadAttention.forward", "context", "output"
    )
    source.show("attention_core/analysis/ablation.py", "rank_heads")
