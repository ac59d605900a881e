"""What the visitor chooses on the page "Shapes", and the drawing of it."""

import streamlit as st

from pages.learn.shapes import example, real_layer
from pages.learn.shapes.walk import Walk, decimals
from serving import visit
from serving.limits import MAX_SMALL_TOKENS, MAX_TEXT_CHARACTERS
from ui.canvas.tensors import Panel, tensors
from ui.widgets import controls
from ui.widgets.linked import linked


def chosen_example() -> Walk:
    """The steps on random numbers of the visitor's sizes."""
    texts, sizes, rest = (st.columns(n, vertical_alignment="bottom") for n in (2, 4, 4))
    with texts[0]:
        sentences = [
            linked(
                st.text_input,
                f"Sentence, up to {MAX_SMALL_TOKENS} words",
                "The cat sleeps",
                key="shapes_text",
                max_chars=300,
            )
        ]
    with texts[1]:
        second = linked(
            st.text_input,
            "Second sentence of the batch (empty: a batch of one)",
            "",
            key="shapes_second",
            max_chars=300,
            placeholder="A dog barks",
        )
    if second.strip():
        sentences.append(second)
    with sizes[0]:
        d_in = linked(st.slider, "Columns in (d_in)", 1, 12, 6, key="shapes_d_in")
    with sizes[1]:
        d_out = linked(
            st.slider, "Columns out (d_out)", 1, example.MOST_WIDTH, 6, key="shapes_d_out"
        )
    with sizes[2]:
        n_heads = linked(st.slider, "Heads", 1, example.MOST_HEADS, 2, key="shapes_heads")
    with sizes[3]:
        length = linked(st.slider, "Context length", 1, MAX_SMALL_TOKENS, 6, key="shapes_context")
    with rest[0]:
        causal = linked(st.toggle, "Mask the future", True, key="shapes_causal")
    with rest[1]:
        dropout = linked(st.slider, "Dropout p", 0.0, 0.9, 0.0, 0.1, key="shapes_dropout")
    with rest[2]:
        draw = controls.seed("Seed of the dropout", "shapes_draw", 0, disabled=dropout == 0)
    with rest[3]:
        seed = controls.seed("Seed of all other numbers", "shapes_seed", 123)
    st.markdown(f":small[Embeddings and matrices are random, drawn with seed {seed}.]")
    return example.walk(
        sentences,
        d_in=d_in,
        d_out=d_out,
        n_heads=n_heads,
        context_length=length,
        causal=causal,
        dropout=dropout,
        seed=seed,
        dropout_seed=draw,
    )


def chosen_layer(name: str) -> Walk:
    """The steps of a model's layer on the visitor's sentence."""
    text = linked(
        st.text_input,
        "Sentence",
        "The cat sleeps on the warm mat",
        key="shapes_words",
        part=visit.TEXT,
        max_chars=MAX_TEXT_CHARACTERS,
    )
    left, right = st.columns(2)
    with left:
        layer = controls.number(
            "Layer", "shapes_layer", real_layer.n_layers(name), 3, part=visit.LAYER
        )
    with right:
        first = controls.number(
            f"First of {real_layer.WINDOW_HEADS} heads drawn",
            "shapes_head",
            len(real_layer.first_heads(name)),
            0,
        )
    with st.spinner("Running the model …", show_time=True):
        return real_layer.walk(name, text, layer, first)


ORIGIN, VALUE = "where a number comes from", "its value"  # what a colour may show


def picture(panels: list[Panel], walk: Walk, colour: str, key: str) -> None:
    """Panels that light up together with all others of the page."""
    followed = any(panel.cells is not None or panel.groups is not None for panel in panels)
    tensors(
        panels,
        key=key,
        colour="identity" if followed and colour == ORIGIN else "value",
        decimals=decimals(panels),
        palette=walk.palette,
        link="shapes",
    )
