"""Shapes: multi-head attention in eleven steps, each number followed from tensor to tensor."""

import streamlit as st

from pages.learn.shapes import example, mistakes, real_layer
from pages.learn.shapes.questions import questions
from pages.learn.shapes.walk import LAST, Walk, decimals
from serving import models
from serving.limits import MAX_SMALL_TOKENS, MAX_TEXT_CHARACTERS
from ui.canvas.tensors import Panel, tensors
from ui.export import source, tables
from ui.widgets import controls, messages, stepper
from ui.widgets.linked import linked
from ui.widgets.quiz import quiz

EXAMPLE, ORIGIN, VALUE = "the example", "where a number comes from", "its value"

st.title("Shapes")
st.markdown(
    "Multi-head attention runs no loop over its heads: wide tensors are cut, turned and joined "
    "again. Follow every number through the eleven steps."
)


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
        max_chars=MAX_TEXT_CHARACTERS,
    )
    left, right = st.columns(2)
    with left:
        layer = controls.number("Layer", "shapes_layer", real_layer.n_layers(name), 3)
    with right:
        first = controls.number(
            f"First of {real_layer.WINDOW_HEADS} heads drawn",
            "shapes_head",
            len(real_layer.first_heads(name)),
            0,
        )
    with st.spinner("Running the model …", show_time=True):
        return real_layer.walk(name, text, layer, first)


def picture(panels: list[Panel], walk: Walk, key: str) -> None:
    """Panels that light up together with all others of the page."""
    followed = any(one.cells is not None or one.groups is not None for one in panels)
    tensors(
        panels,
        key=key,
        colour="identity" if followed and colour == ORIGIN else "value",
        decimals=decimals(panels),
        palette=walk.palette,
        link="shapes",
    )


kind = linked(
    st.selectbox,
    "Steps of",
    [EXAMPLE, *(entry.spec.name for entry in models.ready())],
    key="shapes_of",
    help="The example has random numbers. A model has its own weights.",
)
walk = None
try:
    walk = chosen_example() if kind == EXAMPLE else chosen_layer(kind)
except models.LOAD_ERRORS as error:
    messages.problem(error)

if walk is not None:
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        number = stepper.stepper("Step", LAST, 6, key="shapes_step")
    with right:
        colour = linked(st.selectbox, "Colour shows", [ORIGIN, VALUE], key="shapes_colour")
    step = walk.steps[number - 1]
    overview, what = st.columns(2, gap="medium")
    with overview:
        st.code(walk.overview(number), language=None)
    with what:
        st.header(f"{number}. {step.title}")
        st.markdown(step.why)
        source.step(*walk.code(number))
    if walk.window():
        st.text(walk.window())
    before, after = st.columns(2, gap="large")
    with before:
        st.markdown("**Made from**" if step.made_from else "**Made from nothing before it**")
        if step.made_from:
            picture(walk.before(number), walk, "shapes_before")
    with after:
        st.markdown("**Made now**")
        picture(walk.after(number), walk, "shapes_after")

    with st.expander("One number's way: steps 4 to 11 together"):
        picture(walk.way(), walk, "shapes_way")

    if number == 6:
        st.header("Without the transpose")
        mistake = mistakes.without_transpose(walk)
        st.markdown(
            f"`view(B, H, T, D)` at once gives the same shape. But {mistake.n_wrong} of "
            f"{mistake.n_rows} rows hold another token's numbers (framed), {mistake.n_later} of "
            "them a later token's, which no mask will hide."
        )
        right_way, wrong_way = st.columns(2, gap="large")
        with right_way:
            picture([mistake.right], walk, "shapes_right")
        with wrong_way:
            picture([mistake.wrong], walk, "shapes_wrong")
        st.dataframe(mistake.table, hide_index=True, height=250)
        source.show("attention_core/experiments/learn/shapes.py", "view_without_transpose")
    if number == 11:
        st.header("Without contiguous")
        said = mistakes.without_contiguous(walk)
        st.markdown(
            "`view` right after `transpose`. torch says:"
            if said
            else "Here nothing had to move (one head, token or column): no error."
        )
        if said:
            st.code(said, language=None, wrap_lines=True)
        source.show("attention_core/experiments/learn/shapes.py", "view_without_contiguous_error")

    with st.expander("The numbers of this step"):
        table = walk.numbers(number)
        st.dataframe(table, hide_index=True, height=250)
        name = f"shapes_step_{number}.csv"
        tables.download("Download these numbers (CSV)", table, name, key="shapes_csv")

with st.expander("How to read this", expanded=True):
    st.markdown(
        "- From step 4 on a number keeps its **colour**: the hue is its token, the shade its "
        "column. Point at one: it lights up wherever it is drawn.\n"
        "- **Scores and weights** are new numbers. They have the colour of the token and head "
        "that ask.\n"
        "- Steps 5, 6 and 10 compute nothing. They change only which number stands where."
    )

quiz("shapes", questions())
