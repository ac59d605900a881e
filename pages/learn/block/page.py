"""Block: one transformer layer step by step, and what a stack of layers does."""

from functools import partial
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.learn.block import charts, parameters, permutation, prediction, sections, stream, windows
from pages.learn.block.questions import questions
from pages.learn.block.steps import HIDDEN
from serving import models
from ui.canvas.tensors import tensors
from ui.charts.bars import bars, label_table
from ui.charts.show import show
from ui.export import source, tables
from ui.text.formatting import format_number, plural
from ui.text.isolated import isolated
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table
from ui.widgets.quiz import quiz
from ui.widgets.settings import settings

ORDER, LENS = (
    "attention_core/analysis/permutation.py",
    "attention_core/analysis/residual_stream.py",
)
SAVE = "Download table (CSV)"


def one_layer(text: str, place: DeltaGenerator) -> None:
    """Show every tensor of one layer, step by step, with its settings at `place`."""
    with place, settings():
        layer = sections.layer(text)
    chosen = controls.number("Step", "block_step", len(layer.steps), 0)
    step = layer.steps[chosen]
    st.markdown(f"**Step {chosen}: {step.name}** ({step.shape})")
    panels, identities = windows.panels(layer, step)
    colour: Literal["value", "identity"] = "identity" if identities else "value"
    tensors(panels, key="block_window", colour=colour, palette=windows.PALETTE, hue="head")
    source.show_lines(*step.source)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        plain_table(layer.table, "Steps of the layer")
    with right:
        if step.name == HIDDEN:
            show(
                charts.activation_chart,
                layer.activation.rows,
                layer.activation.function,
                key="block_bend",
            )
        else:
            norms = label_table(layer.labels, step.norms)
            title = "length of the token's vector"
            show(bars, norms, title, horizontal=len(norms) <= 24, height=370, key="block_norms")
    st.text(layer.activation.summary if step.name == HIDDEN else layer.summary)


def new_order(text: str, place: DeltaGenerator) -> None:
    """Show how reordering the tokens affects each part of a layer."""
    with place, settings():
        choice = sections.choose_layer()
        how, seed = sections.choose_order()
    reordering = permutation.permuted_outputs(choice, text, how, seed)
    st.text("New order: " + " ".join(isolated(reordering.labels[i]) for i in reordering.order))
    st.dataframe(reordering.table, hide_index=True, key="block_order_table")
    part = linked(st.selectbox, "Show part", list(reordering.windows), index=3, key="block_part")
    tensors(reordering.windows[part], key="block_order_window")
    source.show(ORDER, "check_equivariance")


def parameter_counts(text: str, place: DeltaGenerator) -> None:
    """Show how many parameters each part of a model has."""
    with place:
        choice = sections.choose_counted_model()
    counts = parameters.counts(choice)
    show(bars, counts.bars, "parameters", height=280, of="part of the model", key="block_counts")
    st.dataframe(counts.table, hide_index=True, key="block_count_table")
    tables.download(SAVE, counts.table, "parameters.csv", key="block_parameters_csv")
    kind = "the loaded weights" if counts.is_loaded else "the shapes of the model's tensors"
    st.markdown(f":small[Counted from {kind}.]")
    source.show("attention_core/costs/parameters.py", "parameters_by_part")


def residual_stream(text: str, place: DeltaGenerator) -> None:
    """Show the length of the vectors in the residual stream after each layer."""
    with place, settings():
        name, text_stream = sections.run(None, text)
        at = sections.position(text_stream)
    show(charts.stream_chart, stream.stream_rows(text_stream, at), key="block_stream_chart")
    table = stream.stream_table(text_stream)
    st.dataframe(table.style.format(precision=2), hide_index=True, key="block_stream")
    tables.download(SAVE, table, "residual_stream.csv", key="block_residual_stream_csv")
    source.show(LENS, "token_norms")


def logit_lens(text: str, place: DeltaGenerator) -> None:
    """Show the most likely next tokens after each layer, using the logit lens."""
    with place, settings():
        name, text_stream = sections.run("decoder", text)
        at = sections.position(text_stream)
    lens = prediction.lens(name, text, at)
    st.text(
        f"The model's final choice is “{isolated(lens.final)}”. It first becomes the most likely "
        f"next token after {plural(lens.first_layer, 'layer')}{lens.stability_note}."
    )
    show(charts.lens_chart, lens.by_layer, key="block_lens_chart")
    table = lens.table.style.format({"its probability": partial(format_number, form=".4f")})
    st.dataframe(table, hide_index=True, height=tables.height(lens.table, 420), key="block_lens")
    tables.download(SAVE, lens.table, "logit_lens.csv", key="block_logit_lens_csv")
    source.show(LENS, "logit_lens")


def next_token(text: str, place: DeltaGenerator) -> None:
    """Show the prediction after the text, which needs only the last row of logits."""
    with place, settings():
        name, text_stream = sections.run("decoder", text)
    end = prediction.next_token(name, text)
    show(
        bars,
        label_table(end.tokens, end.probabilities),
        "probability of the next token",
        largest=1.0,
        key="block_next",
    )
    st.text(
        "Only the last row of logits is needed. Computing it alone changes no logit by more than "
        f"{format_number(end.difference, '.1e')}, and the largest logit is {end.largest:.1f}. "
        "Computing "
        f"all rows takes {end.ratio:.1f} times as many operations as computing just the last row "
        "with a KV cache."
    )
    st.dataframe(end.rows, hide_index=True, key="block_rows")
    source.show(LENS, "last_row_logits")


SECTIONS = {
    sections.STEPS: one_layer,
    sections.ORDER: new_order,
    sections.COUNTS: parameter_counts,
    sections.STREAM: residual_stream,
    sections.LENS: logit_lens,
    sections.NEXT: next_token,
}

st.title("Block")
st.markdown(
    "A layer has two parts. Attention lets tokens exchange information, and the feed-forward "
    "network then works on each token separately. Each part **adds** its result to the residual "
    "stream, the vector that runs through all layers. The original 2017 layer then normalizes "
    "the sum."
)
left, right = controls.row()
with right:
    section = linked(
        st.selectbox, "Section", list(SECTIONS), key="block_section", label_visibility="collapsed"
    )
typed = ""
if section != sections.COUNTS:
    with left:
        typed = controls.text("Sentence", "block_text", prediction.PARIS)
if section in (sections.STREAM, sections.LENS, sections.NEXT) and not models.available(
    None if section == sections.STREAM else "decoder"
):
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
else:
    try:
        SECTIONS[section](typed, right)
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
    else:
        sections.reading_guide(section)
quiz("block", questions)
