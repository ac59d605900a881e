"""The sections of the page "From two networks to one"."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.learn.two_networks.translated import (
    N_WRITTEN,
    Translated,
    judged,
    of_head,
    visible,
    where_it_looks,
)
from ui.canvas.heatmap import ColourScale, Map, heatmap, picked
from ui.charts.bars import bars, labelled
from ui.charts.show import show
from ui.export import source
from ui.frame import sections
from ui.widgets.plain_table import plain_table

MODEL = "pages/learn/two_networks/experiment/model.py"
SYMBOL = "two_networks_symbol"
ATTENTIONS, ONE_VECTOR = "Three attentions", "All through one vector"
LEFT = "Which network is left"
PARTS = (ATTENTIONS, ONE_VECTOR, LEFT)
SCALE = ColourScale(1.0, square_root=True)


def looking_back(translation: Translated, layer: int, head: int | None, symbol: int) -> None:
    """The cross-attention of a head, a row for each written symbol, and one of its rows."""
    weights = of_head(translation.cross, layer, head)
    key = "two_networks_cross"

    def read() -> None:
        cell = picked(key)
        if cell is not None and cell[0] < N_WRITTEN:
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
        st.text(where_it_looks(translation, weights[symbol], symbol))
        rows = labelled(translation.labels, weights[symbol])
        show(
            bars,
            rows,
            "weight",
            horizontal=False,
            of="symbol of the text",
            height=200,
            key=f"{key}_row",
        )


def three_attentions(translation: Translated, layer: int, head: int | None) -> None:
    """The self-attentions of both networks beside the attention between them."""
    text, answer = translation.labels, list(visible(translation.answer))
    read, written = list(text), ["start", *answer[:-1]]
    pictures = (
        ("encoder", translation.encoder, read, read, False),
        ("decoder", translation.decoder, written, written, True),
        ("between", translation.cross, written, read, False),
    )
    for (name, weights, rows, columns, causal), column in zip(
        pictures, st.columns(3, gap="medium"), strict=True
    ):
        with column:
            picture = Map(
                of_head(weights, layer, head),
                columns,
                name,
                causal=causal,
                scale=SCALE,
                row_labels=rows,
            )
            heatmap(picture, key=f"two_networks_{name}")
    n_text, n_written = len(text), len(answer)
    plain_table(
        pd.DataFrame(
            {
                "attention": ["of the encoder", "of the decoder", "between both (cross-attention)"],
                "queries from": ["the text", "the answer", "the answer"],
                "keys and values from": ["the text", "the answer", "the text"],
                "mask": ["none", "no later symbol", "none"],
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
        "All three are one formula. They differ in its vectors and in the mask. "
        "The decoder reads its own answer one place late and never sees what it must say: here a "
        "row is named by what looks, at the top by what is then written."
    )
    with st.expander("The lines that computed this"):
        source.step(
            "attention_core/attention.py",
            "MultiHeadAttention.forward",
            "queries",
            "keys",
            "values",
            "context",
            "output",
        )
        source.step(MODEL, "EncoderDecoderLayer.forward", "self attention", "cross attention")


def one_vector(translation: Translated) -> None:
    """What is lost if the decoder gets one vector in place of every state."""
    left, right = st.columns(2, gap="large")
    with left:
        st.metric("With every state", translation.answer)
        st.metric("With one vector", translation.one_vector)
    with right:
        plain_table(judged().table, "Both ways on dates that training never saw")
        st.markdown(
            "The one vector is the mean of the encoder's states. It says which symbols the text "
            "has, and hardly where they stand. This translator was trained to look back; "
            "earlier networks were trained with one vector, and did better than this. But the "
            "longer the text, the more that vector lost. Attention was made to mend that."
        )
    source.step(MODEL, "Translator.forward", "summed states", "mean state")


def what_is_left() -> None:
    """Which of both networks the models of this site have kept."""
    plain_table(
        pd.DataFrame(
            {
                "model": [
                    "Transformer (2017), T5",
                    "GPT-2, Llama, SmolLM2",
                    "BERT, MiniLM",
                ],
                "network": ["encoder and decoder", "decoder only", "encoder only"],
                "attention": ["all three", "its own, with a mask", "its own, without a mask"],
                "is asked for": ["an answer to a text", "the next token", "hidden words, meanings"],
            }
        ),
        "Which network is left",
    )
    st.markdown(
        "A **decoder alone** puts text and answer into one sequence. Then looking back at the text "
        "is its ordinary self-attention: one network does both jobs. An **encoder alone** writes "
        "nothing, so that it may look both ways."
    )
    left, right = st.columns(2)
    with left:
        st.page_link(
            sections.script("start/one_pass"),
            label="A decoder alone: One pass",
            icon=sections.ICONS["start/one_pass"],
        )
    with right:
        st.page_link(
            sections.script("compare/side_by_side"),
            label="Both kinds: Side by side",
            icon=sections.ICONS["compare/side_by_side"],
        )
