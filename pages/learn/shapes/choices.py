"""The settings of the page "Shapes", and its picture."""

from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.learn.shapes import example, real_layer
from pages.learn.shapes.walk import ShapeWalk, decimals
from serving import models
from serving.limits import MAX_SMALL_TOKENS, MAX_TEXT_CHARACTERS
from ui.canvas.component import picture_caption
from ui.canvas.tensors import Panel, tensors
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.visit import current, model_or_own

EXAMPLE = "the example"
# only the example has these settings, so a link that sets one of them shows the example
EXAMPLE_KIND = (
    "text", "second", "d_in", "d_out", "heads", "context", "causal", "dropout", "draw", "seed",
)  # fmt: skip
_KIND = "shapes_of"


def chosen_kind() -> str:
    """Ask whether to show the example or a model, and return the choice.

    A new visitor sees the example. A visitor who chose a text or a model on another page sees that
    model and text, unless the link sets one of the example's settings or they switched back to the
    example.
    """
    names = [entry.spec.name for entry in models.available()]
    part = model_or_own(_KIND, names)
    if part.prefill is None and current().text is not None:
        part = replace(part, prefill=models.preferred("encoder"))
    if any(f"shapes_{name}" in st.query_params for name in EXAMPLE_KIND):
        part = replace(part, prefill=None)
    kind: str = linked(
        st.selectbox,
        "Model or example",
        [EXAMPLE, *names],
        key=_KIND,
        format_func=models.title,
        label_visibility="collapsed",
        part=part,
    )
    return kind


def _back() -> None:
    st.session_state[_KIND] = EXAMPLE


def chosen_example(text_place: DeltaGenerator) -> ShapeWalk:
    """Compute the steps on random numbers of the chosen sizes; put the text into `text_place`."""
    with text_place:
        sentence = linked(
            st.text_input,
            f"Sentence, up to {MAX_SMALL_TOKENS} words",
            "The cat sleeps",
            key="shapes_text",
            max_chars=300,
            label_visibility="collapsed",
        )
    second = linked(
        st.text_input,
        "Second sentence of the batch (optional)",
        "",
        key="shapes_second",
        max_chars=300,
        placeholder="A dog barks",
    )
    d_in = linked(st.slider, "Input width (d_in)", 1, 12, 6, key="shapes_d_in")
    d_out = linked(st.slider, "Output width (d_out)", 1, example.MAX_WIDTH, 6, key="shapes_d_out")
    n_heads = linked(st.slider, "Heads", 1, example.MAX_HEADS, 2, key="shapes_heads")
    length = linked(st.slider, "Context length", 1, MAX_SMALL_TOKENS, 6, key="shapes_context")
    causal = linked(st.toggle, "Causal mask", True, key="shapes_causal")
    dropout = linked(st.slider, "Dropout p", 0.0, 0.9, 0.0, 0.1, key="shapes_dropout")
    draw = controls.seed("Dropout seed", "shapes_draw", 0, disabled=dropout == 0)
    seed = controls.seed("Seed for embeddings and weights", "shapes_seed", 123)
    return example.walk(
        [sentence, second] if second.strip() else [sentence],
        d_in=d_in,
        d_out=d_out,
        n_heads=n_heads,
        context_length=length,
        causal=causal,
        dropout=dropout,
        seed=seed,
        dropout_seed=draw,
    )


def chosen_layer(name: str, text_place: DeltaGenerator) -> ShapeWalk:
    """Compute the steps of a model's layer; put the sentence into `text_place`."""
    with text_place, st.container(horizontal=True, vertical_alignment="bottom"):
        text = linked(
            st.text_input,
            "Sentence",
            "The cat sleeps on the warm mat",
            key="shapes_words",
            part="text",
            max_chars=MAX_TEXT_CHARACTERS,
            label_visibility="collapsed",
        )
        st.button("Show example", key="shapes_back", on_click=_back)
    picture_caption()["sentence"] = text
    layer = controls.number("Layer", "shapes_layer", models.spec(name).n_layers, 3, part="layer")
    head = controls.number(
        f"First of {real_layer.WINDOW_HEADS} heads shown",
        "shapes_head",
        models.spec(name).n_heads,
        0,
        part="head",
    )
    with text_place, st.spinner("Running the model …", show_time=True):
        n_tokens = real_layer.n_tokens(name, text)
    start = controls.window("shapes_first", n_tokens, real_layer.WINDOW_TOKENS)
    return real_layer.walk(name, text, layer, head, start)


ORIGIN, VALUE = "where a number comes from", "its value"  # what the colors can represent
SPEEDS = (0.5, 1.0, 2.0)


def chosen_speed() -> float:
    """Ask for the animation speed, which also sets how fast "Play" advances; 1 is normal."""
    speed: float = linked(
        st.select_slider,
        "Animation speed",
        SPEEDS,
        1.0,
        key="shapes_speed",
        format_func="{:g}".format,
    )
    return speed


def picture(
    panels: list[Panel], walk: ShapeWalk, colour: str, key: str, scene: str = "", speed: float = 1.0
) -> None:
    """Draw panels that share highlights with the page's others; scene, speed: see `tensors`."""
    followed = any(panel.cells is not None or panel.groups is not None for panel in panels)
    tensors(
        panels,
        key=key,
        colour="identity" if followed and colour == ORIGIN else "value",
        decimals=decimals(panels),
        palette=walk.palette,
        link="shapes",
        scene=scene,
        speed=speed,
    )
