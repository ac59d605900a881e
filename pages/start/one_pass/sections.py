"""Sections below the picture: one word through all layers, training, encoders."""

from __future__ import annotations

import streamlit as st

from pages.start.one_pass import charts, endings, layers, training
from pretrained import CatalogEntry
from serving import models, one_pass
from serving.one_pass import OnePass, OpenHead, OpenLayer
from ui.charts.show import show as show_chart
from ui.export import source, tables
from ui.text.isolated import isolated
from ui.widgets import messages
from ui.widgets.parts import heading, parts
from ui.widgets.plain_table import plain_table

LAYERS, TRAINING, BOTH = "Through all layers", "What training changes", "Decoder and encoder"
BLOCK = "attention_core/model/block.py"


def show(
    entry: CatalogEntry, passed: OnePass, layer: OpenLayer, head: OpenHead, token: int
) -> None:
    """Show the selected section for the selected word."""
    shown = parts("one_pass_part", (LAYERS, TRAINING, BOTH))
    if LAYERS in shown:
        heading(LAYERS, shown)
        _through_all_layers(entry, passed, token)
    if TRAINING in shown:
        heading(TRAINING, shown)
        _training(entry, passed, layer, head, token)
    if BOTH in shown:
        heading(BOTH, shown)
        _both(entry, passed, token)


def _through_all_layers(entry: CatalogEntry, passed: OnePass, token: int) -> None:
    label = isolated(passed.run.tokens.labels[token])
    st.text(f"Every layer adds to “{label}” twice: first attention, then the feed-forward network.")
    show_chart(charts.added_chart, layers.added(passed, token), key="one_pass_added")
    by_layer = layers.table(passed, token)
    forms = {"weight": "{:.3f}", layers.ATTENTION: "{:.4g}", layers.FEED_FORWARD: "{:.4g}"}
    forms |= {"length after the layer": "{:.4g}"}
    with st.expander("Every layer in numbers"):
        plain_table(by_layer, "One token in every layer", forms, most=388)
        tables.download("Download table (CSV)", by_layer, "layers.csv", key="one_pass_csv")
    source.step(BLOCK, "Block.forward", "attention sum", "mlp sum")


def _training(
    entry: CatalogEntry, passed: OnePass, layer: OpenLayer, head: OpenHead, token: int
) -> None:
    numbers = training.learned(entry.spec.name)
    st.markdown(
        f"Training changes the **{numbers.total:,}** parameters of {entry.spec.title}, and nothing "
        "else. Queries, keys, values and attention weights are computed for each text."
    )
    stops = training.stops(passed, layer, head, token, numbers)
    plain_table(stops, "The steps, and the parameters of each", most=620)
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
        messages.problem(error)
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
    source.step("attention_core/masks.py", "causal_mask", "mask")


def _take(name: str) -> None:
    """Switch the page to this model."""
    st.session_state["one_pass_model"] = name
