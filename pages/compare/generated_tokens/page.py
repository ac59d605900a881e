"""Generated tokens: where each step of a generation looked, and the attention sink."""

from functools import partial

import streamlit as st

from pages.compare.generated_tokens import charts, choices, downloads, run, sink, step
from serving import models
from ui.charts.show import show
from ui.export import source, tables
from ui.text.formatting import format_number
from ui.widgets import controls, messages
from ui.widgets.section_picker import section_picker
from ui.widgets.settings import settings
from ui.widgets.stepper import stepper

CHOICES = "What this step could choose"
STEPS = "All steps"
SINK = "Why so much on the first token?"
PROMPT = "The cat sat on the mat. The dog sat on the"

st.title("Generated tokens")
st.markdown(
    "To pick each word, the newest token looks back at the text. Here you see where a head looked "
    "**in that very step**."
)

if not models.available("decoder"):
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    prompt = controls.text("Prompt", "generated_tokens_prompt", PROMPT)
with right:
    entry = controls.model("generated_tokens_model", "decoder", prefer="decoder")
with right, settings():
    request = choices.request(entry.spec.name, prompt)
    view = choices.view(entry.spec)
step_place, progress_place = st.columns([3, 2], gap="small", vertical_alignment="bottom")
try:
    with st.spinner("Loading the model …"):
        models.get(entry.spec.name)
    with progress_place:
        generation = run.generation_with_progress(request)
except models.LOAD_ERRORS as error:
    messages.show_problem(error)
    messages.end_page()
if generation is None:
    messages.end_page()

n_steps = generation.trace.n_steps
if st.session_state.get("generated_tokens_step", 1) > n_steps:  # selected in a longer run
    st.session_state["generated_tokens_step"] = n_steps
with step_place:
    step_index = (
        stepper("Step", n_steps, min(5, n_steps), key="generated_tokens_step") - 1
        if n_steps > 1
        else 0
    )
maps = step.show(generation, view)

left, right = st.columns(2, gap="large")
with left:
    row = step.row(maps, step_index)
    show(charts.bars, row, maps.largest, key="generated_tokens_bars")
    st.text(step.sentence(maps, step_index))
with right:
    step.text(maps, step_index)
shown = section_picker("generated_tokens_part", (CHOICES, STEPS, SINK))
if CHOICES in shown:
    st.subheader(CHOICES)
    table = step.alternatives(generation, step_index).style.format(
        {"probability": partial(format_number, form=".3f")}
    )
    if generation.settings.temperature:
        st.markdown("These are the model's probabilities before temperature is applied.")
    with st.container(
        height=248, border=False
    ):  # one extra row for a chosen token outside the top tokens
        st.dataframe(table, hide_index=True, height="content", key="generated_tokens_choices")
if STEPS in shown:
    st.subheader(STEPS)
    left, right = st.columns(2, gap="large")
    with left:
        step.every_step(maps)
    with right:
        table = step.row_table(maps, step_index)
        rows = tables.height(table, 380)
        styled = table.style.format(precision=5)
        st.dataframe(styled, hide_index=True, height=rows, key="generated_tokens_row")
measurements = None
if SINK in shown:
    st.subheader(SINK)
    try:
        measurements = sink.measurements_with_progress(generation)
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
    else:
        st.markdown(sink.summary(measurements))
        layers = sink.by_layer(measurements)
        left, right = st.columns(2, gap="large")
        with left:
            st.markdown("**Weight on token 0, and its share of the output**")
            show(charts.sink_weight, layers, key="generated_tokens_sink_weight")
        with right:
            st.markdown("**Length of token 0's vectors, relative to the median token**")
            show(charts.sink_ratios, layers, key="generated_tokens_sink_ratio")
        st.markdown("**The same text with a different first token**")
        shares = measurements.experiments.select_dtypes("floating").columns
        st.dataframe(
            measurements.experiments.style.format(
                partial(format_number, form=".3f"), subset=shares
            ),
            hide_index=True,
            height="content",
            key="generated_tokens_sink_table",
        )
        with st.container(horizontal=True):
            tables.download(
                "Download variants (CSV)",
                measurements.experiments,
                "sink_beginnings.csv",
                key="generated_tokens_sink_csv",
            )
            tables.download(
                "Download layers (CSV)",
                layers,
                "sink_layers.csv",
                key="generated_tokens_layers_csv",
            )

downloads.show(maps, step_index)

with st.expander("How to read this"):
    st.markdown(
        "- The token with the solid frame is the **query** of this step. Its weights cover itself "
        "and all earlier tokens. The token with the dashed frame was chosen in this step and is "
        "the query of the next one.\n"
        "- In the map, the prompt's rows come from the prefill, and each later row comes from its "
        "own step. A column that stays bright is a token that every step looks at.\n"
        "- Layer 17, head 5 of SmolLM2 copies: it looks at the token that followed the same word "
        "earlier.\n"
        "- Each row sums to 1, so a head with nothing to add still has to put its weight "
        "somewhere. Decoders use the first token because every token can see it. It's called an "
        "**attention sink** (Xiao et al. 2023, arXiv:2309.17453). A few huge coordinates mark this "
        "token (Sun et al. 2024, arXiv:2402.17762).\n"
        "- *Attention it gets* is a mean over all heads and all later tokens. *Value* is the "
        "length ||v W_O||: what a head would add for this key at a weight of 1."
    )

with st.expander("The code that computed this"):
    source.show("pages/compare/generated_tokens/experiment/trace.py", "trace")
    source.show("pages/compare/generated_tokens/experiment/attention_sink.py", "measure_sink")
