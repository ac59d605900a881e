"""Sections below the picture: one word through all layers, training, encoders."""

from __future__ import annotations

import streamlit as st

from pages.start.one_pass import charts, endings, layers, learned_parts
from pretrained import CatalogEntry
from serving import models, one_pass
from serving.one_pass import HeadDetail, LayerDetail, OnePass
from ui.charts.show import show as show_chart
from ui.export import source, tables
from ui.text.isolated import isolated
from ui.widgets import messages
from ui.widgets.plain_table import plain_table
from ui.widgets.section_picker import section_heading, section_picker

LAYERS, TRAINING, BOTH = "Through all layers", "What training changes", "Decoder and encoder"
BLOCK = "attention_core/model/block.py"


def show(
    entry: CatalogEntry, passed: OnePass, layer: LayerDetail, head: HeadDetail, token: int
) -> None:
    """Show the selected section for the selected word."""
    shown = section_picker("one_pass_part", (LAYERS, TRAINING, BOTH))
    if LAYERS in shown:
        section_heading(LAYERS, shown)
        _through_all_layers(entry, passed, token)
    if TRAINING in shown:
        section_heading(TRAINING, shown)
        _training(entry, passed, layer, head, token)
    if BOTH in shown:
        section_heading(BOTH, shown)
        _both(entry, passed, token)


def _through_all_layers(entry: CatalogEntry, passed: OnePass, token: int) -> None:
    label = isolated(passed.run.tokens.labels[token])
    st.text(f"Every layer adds to “{label}” twice: first attention, then the feed-forward network.")
    show_chart(charts.added_chart, layers.added(passed, token), key="one_pass_added")
    by_layer = layers.table(passed, token)
    forms = {"weight": "{:.3f}", layers.ATTENTION: "{:.4g}", layers.FEED_FORWARD: "{:.4g}"}
    forms |= {"length after the layer": "{:.4g}"}
    with st.expander("Every layer in numbers"):
        plain_table(by_layer, "One token in every layer", forms, max_rows=388)
        tables.download("Download table (CSV)", by_layer, "layers.csv", key="one_pass_csv")
    source.show_lines(BLOCK, "Block.forward", "attention sum", "mlp sum")


def _training(
    entry: CatalogEntry, passed: OnePass, layer: LayerDetail, head: HeadDetail, token: int
) -> None:
    numbers = learned_parts.count_parameters(entry.spec.name)
    st.markdown(
        f"Training changes the **{numbers.total:,}** parameters of {entry.spec.title}, and nothing "
        "else. Queries, keys, values and attention weights are computed for each text."
    )
    stops = learned_parts.stops_table(passed, layer, head, token, numbers)
    plain_table(stops, "The steps, and the parameters of each", max_rows=620)
    source.show("attention_core/costs/parameters.py", "parameters_by_part")


def _both(entry: CatalogEntry, passed: OnePass, token: int) -> None:
    other_role = "encoder" if entry.spec.role == "decoder" else "decoder"
    other = models.preferred(other_role)
    if other is None:
        st.info(
            f"This machine has no {other_role} to compare with. Download one on the page Models."
        )
        return
    try:
        with st.spinner("Running the other model …", show_time=True):
            there = one_pass.one_pass(other, passed.run.tokens.text)
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
        return
    this_end = endings.ending(passed, token)
    other_end = endings.ending(there, endings.same_token(token, passed, there))
    both = (this_end, other_end) if other_role == "encoder" else (other_end, this_end)
    st.text(f"“{isolated(passed.run.tokens.labels[token])}” in a decoder and in an encoder")
    plain_table(endings.side_by_side(*both), "A decoder and an encoder")
    st.button(
        f"Show the {other_role}",
        on_click=_take,
        args=(other,),
        key="one_pass_other",
    )
    source.show_lines("attention_core/masks.py", "causal_mask", "mask")


def _take(name: str) -> None:
    """Switch the page to this model."""
    st.session_state["one_pass_model"] = name
