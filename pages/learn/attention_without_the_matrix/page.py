"""Attention without the matrix: tiles and an online softmax (FlashAttention)."""

import streamlit as st

from pages.learn.attention_without_the_matrix import charts, sections, tile_walk
from pages.learn.attention_without_the_matrix.questions import questions
from serving import models
from ui.canvas.heatmap import DivergingScale, Map, heatmap
from ui.charts.show import show
from ui.export import source, tables
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table
from ui.widgets.quiz import quiz
from ui.widgets.section_picker import section_heading, section_picker
from ui.widgets.settings import settings
from ui.widgets.stepper import stepper

TILES = f"{sections.FOLDER}/tiles.py"
STEP = "attention_without_the_matrix_step"
# Default layer and head: there, later tiles contain larger scores than earlier ones.
FIRST = {"decoder": (11, 7), "encoder": (0, 2)}
O_HEIGHT = 96  # height of the running output, in pixels

st.title("Attention without the matrix")
st.markdown(
    "Attention doesn't need to store its T × T matrix of weights. It can compute the same output "
    "in small **tiles** with an **online softmax**. That saves slow memory traffic: at 8,192 "
    "tokens the matrix of a single head takes 268 MB in float32."
)
if not models.available():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = controls.text("Text", "attention_without_the_matrix_text", controls.ANIMAL)
with right:
    entry = controls.model("attention_without_the_matrix_model", None, prefer="decoder")
with right, settings():
    first_layer, first_head = FIRST[entry.spec.role]
    choice = controls.model_head(
        entry, "attention_without_the_matrix", layer=first_layer, head=first_head
    )
    n_queries = linked(
        st.select_slider,
        "Queries per tile",
        tile_walk.SIZES,
        4,
        key="attention_without_the_matrix_queries",
    )
    n_keys = linked(
        st.select_slider,
        "Keys per tile",
        tile_walk.SIZES,
        4,
        key="attention_without_the_matrix_keys",
    )
    order = linked(
        st.radio, "Order of the tiles", tile_walk.ORDERS, key="attention_without_the_matrix_order"
    )
try:
    with st.spinner("Loading the model …", show_time=True):
        walk = tile_walk.walk_tiles(choice, text, (n_queries, n_keys), order)
except models.LOAD_ERRORS as error:
    messages.show_problem(error)
    messages.end_page()

n_steps, number = len(walk.steps), 0
if st.session_state.get(STEP, 1) > n_steps:  # selected with a longer text or smaller tiles
    st.session_state[STEP] = n_steps
if n_steps > 1:
    number = stepper("Tile", n_steps, tile_walk.first_rescaling(walk), key=STEP) - 1
step = walk.steps[number]
picture, rows = st.columns([6, 5], gap="medium")
with picture:
    show(
        charts.tiles_chart,
        tile_walk.tiles_at(walk, number),
        tile_walk.cells_of(walk, step),
        walk.labels,
        key="attention_without_the_matrix_tiles",
    )
with rows:
    changes = tile_walk.changes_at(step, walk.labels)
    plain_table(changes, "Changes from this tile", max_rows=210)
    output = step.rows.select(step.queries).o.numpy()
    labels = walk.labels[step.queries]
    heatmap(
        Map(
            output,
            ["" if column % 8 else str(column) for column in range(output.shape[1])],
            f"o of {choice.title}",
            causal=False,
            scale=DivergingScale(float(abs(walk.rows.o).max())),
            row_labels=labels,
            value_name="o",
            axes=("query", "column"),
            row_height=max(12, O_HEIGHT // len(labels)),
        ),
        key="attention_without_the_matrix_o",
    )
with st.container(key="attention_without_the_matrix_said"):  # same height for every tile
    for sentence in tile_walk.sentences(walk, number):
        st.text(sentence)
with st.expander("Every row and the code"):
    table = tile_walk.rows_at(walk, step)
    plain_table(table, "Running values of every row", max_rows=250)
    tables.download("Download (CSV)", table, "rows.csv", key="attention_without_the_matrix_rows")
    source.show_lines(
        TILES, "add_tile", "new maximum", "correction", "exponentials", "new sum", "new output"
    )

shown = section_picker(
    "attention_without_the_matrix_part", (sections.MOVED, sections.KEPT, sections.BACK)
)
if sections.MOVED in shown:
    section_heading(sections.MOVED, shown)
    sections.memory_traffic(walk.record.q.shape[-1], walk.run.causal)
if sections.KEPT in shown:
    section_heading(sections.KEPT, shown)
    sections.saved_memory(walk)
if sections.BACK in shown:
    section_heading(sections.BACK, shown)
    sections.backward_pass(walk)

with st.expander("How to read this"):
    st.markdown(
        "- **m** is a row's largest score so far, **l** is the sum of exp(score − m), and **o** is "
        "the same sum with each term multiplied by its value vector. After the last tile, o / l is "
        "the head's output.\n"
        "- **Rescaling**: when m grows, all earlier terms shrink by the same factor, so l and o "
        "are multiplied by it.\n"
        "- Sources: Dao et al. 2022 (FlashAttention), Milakov and Gimelshein 2018 (online softmax)."
    )
quiz("attention_without_the_matrix", questions)
