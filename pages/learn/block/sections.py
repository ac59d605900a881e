"""Sections of the page "Block": names, explanations and shared pickers."""

from __future__ import annotations

import streamlit as st

from pages.learn.block import original_layers, parameters, permutation, steps, stream
from serving import models
from ui.text.isolated import isolated
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.visit import model_or_own

STEPS, ORDER, COUNTS = "One layer", "Order of tokens", "Parameters"
STREAM, LENS, NEXT = "Residual stream", "Logit lens", "Next token"

READ = {
    STEPS: "- Move **Step** from the input to the output. The panels show a corner of each tensor, "
    "and the bars show the length of each token's whole vector.\n"
    "- At first you see a layer of the original 2017 Transformer with random weights. You can "
    "choose a trained model in the settings.\n"
    "- The outputs of the heads are **concatenated per word**. Cells of the same color are the "
    "same number. The out projection then mixes the heads.\n"
    "- Each part **adds** its result to its input. **Post-norm** models (2017, BERT) normalize the "
    "sum. **Pre-norm** models (GPT-2, Llama) normalize the input of each part instead, so the sum "
    "can grow.\n"
    "- The feed-forward network works on each token separately. It widens the vector, applies a "
    "non-linear function and makes the vector narrow again. Without the non-linear function, its "
    "two matrix products could be replaced by one. The step **feed-forward hidden** shows the "
    "curve of the function.\n"
    "- The output has the same shape as the input, so layers can be stacked (six in 2017). All "
    "tokens in a layer are computed in parallel, but each layer has to wait for the one before it.",
    ORDER: "- The feed-forward network uses the **same weights at every position**, so reordering "
    "the tokens before or after it gives the same numbers, up to rounding.\n"
    "- The same is true for attention without a **mask** and without **positions**: to it, a "
    "sentence is just a bag of words.\n"
    "- If you choose a trained model, the table uses its first layer.",
    COUNTS: "- In most layers the **feed-forward** network has the most parameters. A 2017 decoder "
    "layer is an exception: it has two attention blocks, which together have slightly more.\n"
    "- More heads don't need more parameters, because the heads divide the width among themselves. "
    "Fewer key/value heads (Llama) do save parameters.\n"
    "- A **tied** output matrix is the same tensor as the embedding, so it's counted once. "
    "Sinusoidal and rotary positions have no parameters.",
    STREAM: "- The **stream** is the vector that runs through all layers. Attention and the "
    "feed-forward network add to it. The line shows the mean over all tokens, the band shows their "
    "range, and the dashed line shows the chosen token.\n"
    "- Pre-norm streams grow from layer to layer. In a decoder the first token often grows most, "
    "because many heads attend to it when they find nothing else.\n"
    "- Post-norm streams can't grow because every layer ends with a norm.",
    LENS: "- The **logit lens** (nostalgebraist, 2020) shows what the model would predict if it "
    "stopped after a given layer. It applies the final norm and the output matrix to that layer's "
    "output, although they weren't trained for it.\n"
    "- After the last layer this is the model's actual prediction.\n"
    "- A token can take the lead, fall back and still win. A low probability in an early layer "
    "doesn't mean that the layer knows nothing. Its information may be stored in directions that "
    "the output matrix doesn't read.",
    NEXT: "- Only the **last row** of the last layer decides the next token. The other rows matter "
    "only inside attention, as keys and values.\n"
    "- That's why the output matrix is applied to one row only. With a KV cache, the layers "
    "process only one row as well.\n"
    "- The difference and the operation counts are computed for your text.",
}


def reading_guide(section: str) -> None:
    """Show an expander that explains the section."""
    with st.expander("How to read this"):
        st.markdown(READ[section])


def choose_layer() -> str:
    """A picker for a layer of the 2017 Transformer or a model."""
    names = [entry.spec.name for entry in models.available()]
    options = [original_layers.ENCODER_2017, original_layers.DECODER_2017, *names]
    choice: str = linked(
        st.selectbox,
        "Layer of",
        options,
        key="block_layer_of",
        format_func=models.title,
        part=model_or_own("block_layer_of", names),
    )
    return choice


def choose_order() -> tuple[str, int]:
    """Pickers for a new order of the tokens: its kind and the shuffle seed."""
    how: str = linked(st.selectbox, "New order", permutation.ORDERS, key="block_order")
    shuffled = how == "shuffled"
    limits = (0, permutation.MAX_SEED, 1)
    seed = linked(st.slider, "Shuffle seed", *limits, key="block_seed", disabled=not shuffled)
    return how, int(seed)


def choose_counted_model() -> str:
    """A picker for the model whose parameters are counted."""
    choice: str = linked(
        st.selectbox,
        "Model to count",
        parameters.countable(),
        key="block_count",
        format_func=models.title,
        label_visibility="collapsed",
    )
    return choice


def layer(text: str) -> steps.LayerSteps:
    """The chosen layer on a text, either from 2017 or from a model."""
    choice = choose_layer()
    if choice in (original_layers.ENCODER_2017, original_layers.DECODER_2017):
        heads = linked(
            st.select_slider,
            "Heads",
            original_layers.HEADS_2017,
            8,
            key="block_heads",
            help="The heads share 512 columns, for example 8 heads of 64.",
        )
        hidden = linked(
            st.select_slider,
            "Hidden width",
            original_layers.HIDDEN_2017,
            2048,
            key="block_hidden",
            help="Width inside the feed-forward network",
        )
        return steps.layer_2017(choice, text, heads, hidden)
    n_layers = models.spec(choice).n_layers
    chosen = controls.number("Layer", "block_layer", n_layers, 0, part="layer")
    return steps.layer_of(choice, text, chosen)


def run(role: str | None, text: str) -> tuple[str, stream.Stream]:
    """The chosen model, limited to `role` if given, and its run on the text."""
    key = "block_decoder" if role else "block_model"
    name = controls.model(key, role, prefer="gpt2").spec.name
    return name, stream.run(name, text)


def position(text_stream: stream.Stream) -> int:
    """The position of the chosen token; the picker counts back from the last one."""
    n = len(text_stream.labels)
    back = controls.number("Tokens back from the end", "block_back", n, 0, "0 is the last token.")
    st.text(f"Position {n - 1 - back}: “{isolated(text_stream.labels[n - 1 - back])}”")
    return n - 1 - back
