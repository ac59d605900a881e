"""The sections of the page "Block": their names, how to read them, the pickers that they share."""

from __future__ import annotations

import streamlit as st

from pages.learn.block import orders, originals, parameters, steps, stream
from serving import models
from ui.text.isolated import isolated
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.visit import model_or_own

STEPS, ORDER, COUNTS = "One layer", "Order of tokens", "Parameters"
STREAM, LENS, NEXT = "Residual stream", "Logit lens", "Next token"

READ = {
    STEPS: "- Move **Step** from the input to the output. The window shows a corner of each "
    "tensor, the bars all of it.\n"
    "- Heads are **concatenated per word**: same colour, same number. Then the out projection "
    "mixes them.\n"
    "- What a part computes is **added** to its input. **Post-norm** (2017, BERT) normalises the "
    "sum; **pre-norm** (GPT-2, Llama) normalises what a part reads, and the sum may grow.\n"
    "- The feed-forward network takes each token alone: it makes the vector wider, turns what is "
    "below zero into nothing or little, and makes it narrow again. Without that step in the middle "
    "its two matrix products could do no more than a single one. The step **feed-forward hidden** "
    "draws its curve: a straight line would be no such step.\n"
    "- The output has the input's shape, so layers stack: six in 2017. Within a layer all tokens "
    "are computed at once. The layers have to wait for each other: each reads what the one before "
    "it made.",
    ORDER: "- The feed-forward network has the **same weights at every position**: reordering "
    "before it or after it gives the same numbers, up to rounding.\n"
    "- So does attention, until a **mask** or **positions** tell tokens where they stand. Without "
    "either, a sentence is a bag of words.\n"
    "- Of a model, the parts are those of its first layer.",
    COUNTS: "- In a layer with one attention most numbers sit in the **feed-forward** network. A "
    "decoder layer of 2017 has two attentions, which together have slightly more.\n"
    "- Heads split a width: more heads cost nothing. Fewer key/value heads (Llama) do save.\n"
    "- A **tied** output matrix is the embedding again: one tensor, counted once. Sinusoidal and "
    "rotary positions learn nothing.",
    STREAM: "- **Stream** is the vector that runs through all layers; attention and feed-forward "
    "only add to it. The line is the mean over the tokens, the band their range, the dashes the "
    "chosen token.\n"
    "- Pre-norm streams grow. The first token of a decoder often grows most: heads rest there.\n"
    "- Post-norm streams cannot grow: every layer ends with a norm.",
    LENS: "- The **logit lens** (nostalgebraist, 2020) asks each layer for its opinion: the last "
    "norm and the output matrix on a state they were not trained for.\n"
    "- After the last layer it is the model's own prediction.\n"
    "- A token can lead, fall back, and win. Small numbers early do not mean that nothing is "
    "known: it may stand in directions that this matrix does not read.",
    NEXT: "- Only the **last row** of the last layer decides the next token. The other rows matter "
    "inside attention: as keys and values.\n"
    "- So the output matrix runs on one row, and with keys and values kept (the KV cache) the "
    "layers do too.\n"
    "- Difference and operations are computed for this text.",
}


def read(section: str) -> None:
    """Show an expander that explains how to read the section."""
    with st.expander("How to read this"):
        st.markdown(READ[section])


def choose_layer() -> str:
    """A picker for what to take apart: a layer of the 2017 Transformer, or a model."""
    names = [entry.spec.name for entry in models.ready()]
    options = [originals.ENCODER_2017, originals.DECODER_2017, *names]
    chosen: str = linked(
        st.selectbox,
        "Layer of",
        options,
        key="block_layer_of",
        format_func=models.title,
        part=model_or_own("block_layer_of", names),
    )
    return chosen


def choose_order() -> tuple[str, int]:
    """Pickers for a new order of the tokens: its kind, and the number of the shuffle."""
    how: str = linked(st.selectbox, "New order", orders.ORDERS, key="block_order")
    shuffled = how == "shuffled"
    limits = (0, orders.MAX_SEED, 1)
    seed = linked(st.slider, "Shuffle number", *limits, key="block_seed", disabled=not shuffled)
    return how, int(seed)


def choose_what_to_count() -> str:
    """A picker for the model whose parameters are counted: of 2017, or a published one."""
    chosen: str = linked(
        st.selectbox,
        "Model to count",
        parameters.countable(),
        key="block_count",
        format_func=models.title,
        label_visibility="collapsed",
    )
    return chosen


def layer(text: str) -> steps.LayerSteps:
    """The chosen layer on a text: of 2017 with the chosen sizes, or of a model with its number."""
    choice = choose_layer()
    if choice in (originals.ENCODER_2017, originals.DECODER_2017):
        heads = linked(
            st.select_slider,
            "Heads",
            originals.HEADS_2017,
            8,
            key="block_heads",
            help="Together they always have 512 columns: 8 heads of 64.",
        )
        hidden = linked(
            st.select_slider,
            "Hidden width",
            originals.HIDDEN_2017,
            2048,
            key="block_hidden",
            help="The width inside the feed-forward network.",
        )
        return steps.layer_2017(choice, text, heads, hidden)
    n_layers = models.spec(choice).n_layers
    chosen = controls.number("Layer", "block_layer", n_layers, 0, part="layer")
    return steps.layer_of(choice, text, chosen)


def run(role: str | None, text: str) -> tuple[str, stream.Stream]:
    """The chosen model (a decoder, where the role says so) and its run on the text."""
    key = "block_decoder" if role else "block_model"
    name = controls.model(key, role, prefer="gpt2").spec.name
    return name, stream.run(name, text)


def position(text_stream: stream.Stream) -> int:
    """The position of the chosen token, which the visitor counts back from the last one."""
    n = len(text_stream.labels)
    back = controls.number("Tokens before the last", "block_back", n, 0, "0 is the last token.")
    st.text(f"Position {n - 1 - back}: “{isolated(text_stream.labels[n - 1 - back])}”")
    return n - 1 - back
