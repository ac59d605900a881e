"""Attention without the matrix: tiles and an online softmax instead of T × T weights in memory."""

import streamlit as st

from pages.learn.attention_without_the_matrix import charts, sections, walked
from pages.learn.attention_without_the_matrix.questions import questions
from serving import models
from ui.canvas.heatmap import DivergingScale, Map, heatmap
from ui.charts.show import show
from ui.export import source, tables
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.parts import heading, parts
from ui.widgets.plain_table import plain_table
from ui.widgets.quiz import quiz
from ui.widgets.settings import settings
from ui.widgets.stepper import stepper

TILES = f"{sections.FOLDER}/tiles.py"
STEP = "attention_without_the_matrix_step"
# The layer and head that are open at first: in them later tiles bring larger scores.
FIRST = {"decoder": (11, 7), "encoder": (0, 2)}
O_HEIGHT = 96  # pixels of all rows of the running output together

st.title("Attention without the matrix")
st.markdown(
    "The weights of one head are T × T numbers that are written to memory and read again: 268 MB "
    "in float32 at 8,192 tokens. A processor then waits for memory, not for arithmetic. "
    "**Tiles** with an **online softmax** give the same output, and the matrix never exists."
)
if not models.ready():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = controls.text("Text", "attention_without_the_matrix_text", controls.ANIMAL)
with right:
    entry = controls.model("attention_without_the_matrix_model", None, prefer="decoder")
with right, settings():
    first_layer, first_head = FIRST[entry.spec.role]
    choice = controls.head_of(
        entry, "attention_without_the_matrix", layer=first_layer, head=first_head
    )
    n_queries = linked(
        st.select_slider,
        "Queries of a tile",
        walked.SIZES,
        4,
        key="attention_without_the_matrix_queries",
    )
    n_keys = linked(
        st.select_slider,
        "Keys of a tile",
        walked.SIZES,
        4,
        key="attention_without_the_matrix_keys",
    )
    order = linked(
        st.radio, "Order of the tiles", walked.ORDERS, key="attention_without_the_matrix_order"
    )
try:
    with st.spinner("Loading the model …", show_time=True):
        walk = walked.walk(choice, text, (n_queries, n_keys), order)
except models.LOAD_ERRORS as error:
    messages.problem(error)
    messages.end_page()

n_steps, number = len(walk.steps), 0
if st.session_state.get(STEP, 1) > n_steps:  # of a longer text or smaller tiles before
    st.session_state[STEP] = n_steps
if n_steps > 1:
    number = stepper("Tile", n_steps, walked.first_rescaling(walk), key=STEP) - 1
step = walk.steps[number]
picture, rows = st.columns([6, 5], gap="medium")
with picture:
    show(
        charts.tiles_chart,
        walked.tiles_at(walk, number),
        walked.cells_of(walk, step),
        walk.labels,
        key="attention_without_the_matrix_tiles",
    )
with rows:
    changes = walked.changes_at(step, walk.labels)
    plain_table(changes, "What this tile changes", most=210)
    output = step.rows.of(step.queries).o.numpy()
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
with st.container(key="attention_without_the_matrix_said"):  # of every tile as high as of any
    for sentence in walked.sentences(walk, number):
        st.text(sentence)
with st.expander("Every row, the code"):
    table = walked.rows_at(walk, step)
    plain_table(table, "What is kept of every row", most=250)
    tables.download("Download (CSV)", table, "rows.csv", key="attention_without_the_matrix_rows")
    source.step(
        TILES, "add_tile", "new maximum", "correction", "exponentials", "new sum", "new output"
    )

shown = parts("attention_without_the_matrix_part", (sections.MOVED, sections.KEPT, sections.BACK))
if sections.MOVED in shown:
    heading(sections.MOVED, shown)
    sections.moved(walk.record.q.shape[-1], walk.run.causal)
if sections.KEPT in shown:
    heading(sections.KEPT, shown)
    sections.kept(walk)
if sections.BACK in shown:
    heading(sections.BACK, shown)
    sections.way_back(walk)

with st.expander("How to read this"):
    st.markdown(
        "- **m** is the largest score a row has met, **l** the sum of exp(score − m), **o** the "
        "same sum with every term times its value. At the end o / l is the head's output.\n"
        "- **Rescaled**: when m grows, all earlier terms shrink by the same factor, so l and o are "
        "multiplied by it.\n"
        "- FlashAttention: Dao et al. 2022. Online softmax: Milakov and Gimelshein 2018."
    )
quiz("attention_without_the_matrix", questions)
