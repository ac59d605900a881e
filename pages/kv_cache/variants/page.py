"""The page "Variants": cache size and speed of MHA, GQA, MQA and MLA."""

import streamlit as st

from pages.kv_cache.variants import downloads, drift, key_readers, sections, timing_view
from serving import models
from ui.export import source
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.section_picker import section_picker
from ui.widgets.settings import settings

LATENT = "attention_core/model/latent.py"
NUMBERS = "The bytes of every form"
TIME = "The time of a decode step"
LATENTS = "MLA: one latent instead of keys and values"
TRAINED = "A model that was trained with shared keys"

st.title("Variants")
st.markdown(
    "The cache shrinks if several query heads share the same keys and values, or if each head "
    "computes them from one small latent vector."
)

left, right = controls.row()
with left:
    text = controls.text("Prompt", "variants_text", controls.ANIMAL)
with right, settings():
    n_heads = linked(
        st.select_slider,
        "Query heads",
        key_readers.HEADS,
        12,
        key=sections.HEADS_KEY,
        help=f"The width is always {key_readers.WIDTH}, so more heads means smaller heads.",
    )
name = sections.choose_form(n_heads)
try:
    with st.spinner("Running every form …", show_time=True):
        ladder = key_readers.run_ladder(text, n_heads)
except ValueError as error:
    messages.show_problem(error)
    messages.end_page()
form = ladder.forms[name]
left, right = st.columns(2, gap="large")
with left:
    st.subheader("Which heads read which keys")
    sections.show_sharing(ladder, form)
with right:
    st.subheader("How much memory each form needs")
    sections.cache_bytes(ladder, form)
st.markdown(sections.form_sentence(ladder, form))
shown = section_picker("variants_part", (NUMBERS, TIME, LATENTS, drift.AVERAGED_HEADS, TRAINED))
if NUMBERS in shown:
    st.header(NUMBERS)
    sections.bytes_numbers(ladder)
    source.show_lines(
        "attention_core/costs/formulas.py",
        "mla_cache_bytes" if name == "MLA" else "kv_cache_bytes",
        "bytes",
    )
if TIME in shown:
    st.header(TIME)
    timing_view.show(text, n_heads)
    source.show_lines("attention_core/costs/stopwatch.py", "interleave", "first run", "result")
if LATENTS in shown:
    st.header(LATENTS)
    sections.latent_shapes(ladder, key_readers.run_latent_forms(text, n_heads))
    left, right = st.columns(2, gap="large")
    with left:
        expanded = ("keys and values", "sizes", "split", "keys")
        source.show_lines(LATENT, "LatentAttention._expanded", *expanded)
    with right:
        source.show_lines(LATENT, "LatentAttention._absorbed", "queries", "keys")
if drift.AVERAGED_HEADS in shown or TRAINED in shown:
    if not models.available():
        st.warning(models.NO_WEIGHTS, icon=":material/download:")
        messages.end_page()
    st.header(drift.AVERAGED_HEADS if drift.AVERAGED_HEADS in shown else TRAINED)
    entry = controls.model(drift.MODEL, None, prefer="encoder")
    try:
        if drift.AVERAGED_HEADS in shown:
            drift.show_pooled(entry.spec.name, text)
        grouped = drift.grouped_entry(entry)
        if TRAINED in shown and grouped is not None:
            if drift.AVERAGED_HEADS in shown:
                st.header(TRAINED)
            drift.show_group(grouped, text)
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)

downloads.show(ladder, text)

with st.expander("How to read this"):
    st.markdown(
        "- **MHA** stores keys and values for every query head, **GQA** *g* stores them for *g* "
        "groups of heads, and **MQA** stores one set for all heads. **MLA** stores one latent, "
        "from which each head computes its own keys and values, and one rotary key for positions.\n"
        "- MLA's sizes follow DeepSeek-V2 and V3: the latent has 4 times the head size, and the "
        "rotary key half of it. The **absorbed** form projects the query into the latent space, so "
        "it never computes keys. The **expanded** form computes all of them. The results are the "
        "same except for rounding.\n"
        "- **Time** on a CPU is mostly spent reading weights. A smaller cache pays off when the "
        "context is long or many sequences run together. Try different lengths.\n"
        "- The **relative difference** is how far a hidden state moved, divided by its length. The "
        "**share of attention that moved** is half the sum of the absolute changes in a row, from "
        "0 to 1. The **divergence** compares the predictions of the next token, in nats.\n"
        "- Heads of one group share keys but not queries, so they can attend to different tokens. "
        "One text is an example, not an average.\n"
        "- Sources: [MQA](https://arxiv.org/abs/1911.02150), "
        "[GQA](https://arxiv.org/abs/2305.13245), [MLA](https://arxiv.org/abs/2405.04434), "
        "[window](https://arxiv.org/abs/2310.06825)."
    )
