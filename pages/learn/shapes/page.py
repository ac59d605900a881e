"""The page "Shapes": multi-head attention in eleven steps, number by number."""

import streamlit as st

from pages.learn.shapes import mistakes
from pages.learn.shapes.choices import (
    EXAMPLE,
    ORIGIN,
    VALUE,
    chosen_example,
    chosen_kind,
    chosen_layer,
    chosen_speed,
    picture,
)
from pages.learn.shapes.questions import questions
from pages.learn.shapes.reasons import reason
from pages.learn.shapes.sentences import describe_step
from pages.learn.shapes.walk import LAST
from serving import models
from ui.export import source, tables
from ui.widgets import code_block, controls, messages, stepper
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table
from ui.widgets.quiz import quiz
from ui.widgets.settings import settings
from ui.widgets.visit import unused_text_note

MISTAKES = "pages/learn/shapes/experiment/mistakes.py"

st.title("Shapes")
st.markdown(
    "To compute all heads together, **cut each row into one piece per head, then sort the pieces "
    "by head instead of by word**. Step through it, and point at a number to see what it was "
    "computed from."
)


text_place, right = controls.row()
with right:
    kind = chosen_kind()
if kind == EXAMPLE:
    unused_text_note("an example of random numbers", "with the models in the picker above")
walk, problem = None, None
with right, settings():
    colour = linked(st.selectbox, "Color shows", [ORIGIN, VALUE], key="shapes_colour")
    speed = chosen_speed()
    try:
        walk = chosen_example(text_place) if kind == EXAMPLE else chosen_layer(kind, text_place)
    except models.LOAD_ERRORS as error:
        problem = error
if problem is not None:
    messages.show_problem(problem)

if walk is not None:
    number = stepper.stepper("Step", LAST, 1, key="shapes_step", seconds=4.0 / speed)
    step = walk.steps[number - 1]
    with st.container(key="shapes_panels"):
        before, after = st.columns(2, gap="large") if step.sources else (None, st.container())
        if before is not None:
            with before:
                st.markdown("**Inputs**")
                picture(walk.input_panels(number), walk, colour, "shapes_before")
        with after:
            st.markdown(f"**Step {number}: {step.title}**")
            picture(
                walk.output_panels(number), walk, colour, "shapes_after", f"step {number}", speed
            )
    st.markdown(reason(walk, number))
    if said := describe_step(walk, number):
        st.text(said)
    if walk.window():
        st.text(walk.window())
    overview, code = st.columns([6, 5], gap="medium")
    with overview, st.container(key="shapes_overview"):
        code_block.plain(walk.overview(number))
    with code:
        source.show_lines(*walk.code(number))
        st.markdown(
            ":small[In the example, embeddings and matrices are random numbers; their seed is in "
            "the settings. A model uses its trained weights.]"
        )

    with st.expander("Follow one number through steps 4 to 11"):
        picture(walk.path_panels(), walk, colour, "shapes_way")

    if number == 6:
        st.header("Without the transpose")
        mistake = mistakes.without_transpose(walk)
        st.markdown(
            "If you call `view(B, H, T, D)` directly, the shape is right but the numbers are in "
            f"the wrong rows. {mistake.n_wrong} of {mistake.n_rows} rows (framed) contain another "
            f"token's numbers. In {mistake.n_later} of them it's a later token, and the mask "
            "won't hide it."
        )
        right_way, wrong_way = st.columns(2, gap="large")
        with right_way:
            picture([mistake.expected], walk, colour, "shapes_right")
        with wrong_way:
            picture([mistake.actual], walk, colour, "shapes_wrong")
        plain_table(mistake.table, "Rows that contain another token's numbers", max_rows=250)
        source.show(MISTAKES, "view_without_transpose")
    if number == 11:
        st.header("Without contiguous")
        error_text = mistakes.without_contiguous(walk)
        st.markdown(
            "If you call `view` right after `transpose`, PyTorch raises this error:"
            if error_text
            else "With a single head, token or column, the transpose moves nothing, so `view` "
            "works without `contiguous`."
        )
        if error_text:
            code_block.plain(error_text)
        source.show(MISTAKES, "view_without_contiguous_error")

    with st.expander("Table of this step's numbers"):
        table = walk.numbers(number)
        st.dataframe(table, hide_index=True, height=tables.height(table, 250))
        name = f"shapes_step_{number}.csv"
        tables.download("Download CSV", table, name, key="shapes_csv")

with st.expander("How to read this"):
    st.markdown(
        "- **Point at a number**: the numbers it was computed from get a frame, and the "
        "calculation appears below.\n"
        "- Steps 5, 6 and 10 only move numbers around. (With rotary positions, step 6 also "
        "rotates queries and keys.) Point at a number there, and it lights up in every tensor.\n"
        "- **Colors**: the hue shows a number's token, the shade its column. Scores and weights "
        "are colored by value; the color bars are below the picture."
    )

quiz("shapes", questions)
