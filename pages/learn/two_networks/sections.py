"""The sections of the page "From two networks to one"."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.learn.two_networks.translation import (
    N_ANSWER_SYMBOLS,
    DateTranslation,
    attention_sentence,
    head_weights,
    held_out_results,
)
from ui.canvas.heatmap import ColourScale, Map, clicked_cell, heatmap
from ui.charts.bars import bars, label_table
from ui.charts.show import show
from ui.export import source
from ui.frame import sections
from ui.widgets.plain_table import plain_table

MODEL = "pages/learn/two_networks/experiment/model.py"
SYMBOL = "two_networks_symbol"
ATTENTIONS, ONE_VECTOR = "Three attentions", "All through one vector"
SURVIVORS = "Which network is left"
PARTS = (ATTENTIONS, ONE_VECTOR, SURVIVORS)
SCALE = ColourScale(1.0, square_root=True)


def verdict(translation: DateTranslation) -> str:
    """Say whether the answer is right, or why the text has no right answer."""
    if translation.expected == translation.answer:
        return "That's correct."
    if translation.expected is not None:
        return f"That's **wrong**: the correct answer is {translation.expected}."
    if translation.is_impossible_day:
        return "But the calendar doesn't have this day, so there is **no correct answer**."
    return (
        "But your text is **not a date** from 1900 to 2099 in a form it was trained on. It only "
        "learned to write dates, so it makes up an answer that looks similar to one."
    )


def cross_attention(
    translation: DateTranslation, layer: int, head: int | None, symbol: int
) -> None:
    """Show a head's cross-attention, and the weights of one of its rows."""
    weights = head_weights(translation.cross, layer, head)
    key = "two_networks_cross"

    def read() -> None:
        cell = clicked_cell(key)
        if cell is not None and cell[0] < N_ANSWER_SYMBOLS:
            st.session_state[SYMBOL] = cell[0]

    left, right = st.columns([3, 2], gap="large")
    with left:
        picture = Map(
            weights,
            translation.labels,
            "cross-attention",
            causal=False,
            scale=SCALE,
            row_labels=list(translation.answer),
            axes=("written symbol", "read symbol"),
            framed_rows=(symbol,),
            row_height=30,
        )
        heatmap(picture, key=key, on_cell=read)
    with right:
        st.text(attention_sentence(translation, weights[symbol], symbol))
        rows = label_table(translation.labels, weights[symbol])
        show(
            bars,
            rows,
            "weight",
            horizontal=False,
            of="symbol in the text",
            height=200,
            key=f"{key}_row",
        )


def three_attentions(translation: DateTranslation, layer: int, head: int | None) -> None:
    """Show both networks' self-attention next to the cross-attention between them."""
    text, answer = translation.labels, list(translation.answer)
    # every row is named after the symbol being generated, as in the map at the top of the page
    read, already_written = list(text), ["start", *answer[:-1]]
    pictures = (
        ("encoder", "encoder", translation.encoder, read, read, False),
        ("decoder", "decoder", translation.decoder, answer, already_written, True),
        ("between", "decoder to encoder", translation.cross, answer, read, False),
    )
    for (name, title, weights, rows, columns, causal), column in zip(
        pictures, st.columns(3, gap="medium"), strict=True
    ):
        with column:
            picture = Map(
                head_weights(weights, layer, head),
                columns,
                title,
                causal=causal,
                scale=SCALE,
                row_labels=rows,
            )
            heatmap(picture, key=f"two_networks_{name}")
    n_text, n_written = len(text), len(answer)
    plain_table(
        pd.DataFrame(
            {
                "attention": [
                    "encoder self-attention",
                    "decoder self-attention",
                    "cross-attention (decoder to encoder)",
                ],
                "queries from": ["the text", "the answer", "the answer"],
                "keys and values from": ["the text", "the answer", "the text"],
                "mask": ["none", "causal", "none"],
                "weights": [
                    f"{n_text} × {n_text}",
                    f"{n_written} × {n_written}",
                    f"{n_written} × {n_text}",
                ],
            }
        ),
        "Three attentions",
    )
    st.markdown(
        "All three use the same formula; only their inputs and masks differ. In the decoder's "
        "maps, each row is the symbol being written. The decoder's self-attention sees only a "
        "start symbol and the symbols already written."
    )
    with st.expander("Show the code"):
        source.show_lines(
            "attention_core/attention.py",
            "MultiHeadAttention.forward",
            "queries",
            "keys",
            "values",
            "context",
            "output",
        )
        source.show_lines(MODEL, "EncoderDecoderLayer.forward", "self attention", "cross attention")


def one_vector(translation: DateTranslation) -> None:
    """Show what is lost if the decoder gets a single vector instead of all states."""
    left, right = st.columns(2, gap="large")
    with left:
        st.metric("With all states", translation.answer)
        st.metric("With one vector", translation.one_vector)
    with right:
        plain_table(held_out_results().table, "Results on dates that weren't in the training data")
        st.markdown(
            "The single vector is the mean of the encoder's states. It contains which symbols the "
            "text has, but hardly anything about their order. This translator was never trained "
            "that way. Earlier networks were, and did better, but they lost more and more as "
            "texts got longer. Attention was invented to fix that."
        )
    source.show_lines(MODEL, "Translator.forward", "summed states", "mean state")


def surviving_parts() -> None:
    """Show which of the two networks today's models still have."""
    plain_table(
        pd.DataFrame(
            {
                "model": [
                    "Transformer (2017), T5",
                    "GPT-2, Llama, SmolLM2",
                    "BERT, MiniLM",
                ],
                "network": ["encoder and decoder", "decoder only", "encoder only"],
                "attention": [
                    "all three",
                    "self-attention with a causal mask",
                    "self-attention without a mask",
                ],
                "used for": [
                    "turning one text into another",
                    "predicting the next token",
                    "filling in hidden words, comparing meanings",
                ],
            }
        ),
        "Which network is left",
    )
    st.markdown(
        "A **decoder-only** model puts the text and the answer into one sequence. It looks back at "
        "the text with ordinary self-attention, so one network does both jobs. An **encoder-only** "
        "model doesn't write anything, so it can look in both directions."
    )
    left, right = st.columns(2)
    with left:
        st.page_link(
            sections.script("start/one_pass"),
            label="See a decoder: One pass",
            icon=sections.ICONS["start/one_pass"],
        )
    with right:
        st.page_link(
            sections.script("compare/side_by_side"),
            label="Compare both kinds: Side by side",
            icon=sections.ICONS["compare/side_by_side"],
        )
