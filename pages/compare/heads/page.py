"""Heads: every layer and head of a model on the visitor's sentence, and one of them opened."""

import streamlit as st

from pages.compare.heads import (
    choices,
    downloads,
    history,
    numbers,
    open_head,
    stages,
    statistics,
    values,
)
from serving import models, runs
from ui.canvas.mosaic import Arrangement, arrange, mosaic
from ui.export import source
from ui.widgets import controls, head_pairs, messages
from ui.widgets.head_links import TokenPair, head_links
from ui.widgets.later import later
from ui.widgets.linked import linked
from ui.widgets.pair import choose_pair
from ui.widgets.parts import heading, parts
from ui.widgets.settings import settings

MOSAIC = "heads_mosaic"  # the key of the mosaic
PAIR, LINES, NUMBERS = "One pair of tokens", "Lines from query to key", "All heads in numbers"
PARTS = (PAIR, LINES, NUMBERS, *([history.TITLE] if history.offered() else []))

st.title("Heads")
st.markdown(
    "Every head of every layer decides anew how much each token takes from every other. "
    "Here are all of them on one sentence; click one to open it."
)

if not models.ready():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = controls.text("Sentence", "heads_text", controls.ANIMAL)
with right:
    entry = controls.model("heads_model", None, prefer="encoder")
try:
    with st.spinner("Running the model …", show_time=True):
        run = runs.run(entry.spec.name, text)
        table = statistics.table(run)
except models.LOAD_ERRORS as error:
    messages.problem(f"{entry.spec.title}: {error}")
    messages.end_page()

n_heads = entry.spec.n_heads
with right, settings():
    order = choices.order(table)
    reading = choices.reading(run)
    drawing = choices.drawing()


def show(number: int) -> None:
    """The head that was clicked becomes the open one."""
    st.session_state["heads_layer"], st.session_state["heads_head"] = divmod(number, n_heads)
    st.session_state["heads_sheet"] = True


@st.fragment
@messages.page()
def pictures() -> None:
    """All heads, and one of them open: to open another runs and paints this part alone."""
    if MOSAIC not in st.session_state:  # a new visit to the page
        st.session_state.pop("heads_sheet", None)
    all_heads, beside = st.columns([5, 4], gap="medium")
    # on a phone a clicked head comes as a sheet from below
    is_sheet = st.session_state.get("heads_sheet", False)
    one_head = beside.container(key="heads_sheet_open" if is_sheet else "heads_sheet_closed")
    with all_heads:
        packed = values.packed(run, reading, name=MOSAIC)
        mosaic(packed, key=MOSAIC, on_open=show)
        st.markdown(
            f":small[{order.explanation} {packed.shape[0]} × {packed.shape[1]} heads, "
            f"{len(run.tokens)} tokens, {len(packed.data):,} bytes. A value read here is within "
            f"±{packed.stated_error} of the tensor ({packed.levels} steps a head); the open head "
            "is exact.]"
        )
    with one_head, st.container(horizontal=True, vertical_alignment="bottom"):
        choice = controls.head_of_text(entry, "heads", text)
        if is_sheet:
            st.button(
                "Close",
                key="heads_close",
                help="Back to all heads.",
                icon=":material/keyboard_arrow_down:",
                on_click=lambda: st.session_state.pop("heads_sheet", None),
            )
    arrangement = Arrangement(
        selected=choice.layer * n_heads + choice.head,
        order=order.heads,
        captions=order.captions,
        scale=float(values.values(run, reading).max()) if drawing.one_scale else None,
        square_root=drawing.square_root,
        threshold=drawing.threshold,
        hidden=reading.hidden,
        large=drawing.large,
    )
    arrange(arrangement, key=MOSAIC)
    with one_head:
        map_place = later()
        with st.container(horizontal=True, gap="small"):
            stage = linked(
                st.select_slider,
                "Step",
                stages.STAGES,
                stages.WEIGHTS,
                key="heads_stage",
                width=100,
                help="From the scores to the weights, in the order of the computation.",
            )
            pair = choose_pair(run, choice, "heads")
    with map_place:
        open_head.show_map(run, choice, reading, drawing, stage, pair)
    with all_heads:
        head_pairs.strongest_pair(run, choice)
        st.markdown(f":small[{choice.title} on other pages:]")
        head_links(choice, text, here="compare/heads", pair=TokenPair(run.tokens, *pair))
    shown = parts("heads_part", PARTS)
    if PAIR in shown:
        heading(PAIR, shown)
        open_head.show_pair(run, choice, pair)
    if LINES in shown:
        open_head.show_lines(run, choice, reading)
    if NUMBERS in shown:
        heading(NUMBERS, shown)
        numbers.show(table, f"{entry.spec.name}_statistics.csv")
    if history.TITLE in shown:
        heading(history.TITLE, shown)
        history.show()

    downloads.show(run, choice, reading, pair)


pictures()

with st.expander("How to read this"):
    st.markdown(
        "- A **row** is a query: the token that looks. A **column** is a key: the token looked "
        "at. In a decoder the upper half is empty: a query may not look ahead.\n"
        "- Many heads rest on the first token, `[CLS]` or `[SEP]` when they have nothing to say. "
        "Leave those keys out to see the rest; switch to **contributions** to see how little "
        "such a rest may write.\n"
        "- A **weight** says how much of a value vector is taken. Its **contribution** is the "
        "length of what that adds to the output, `‖α v W_O‖`.\n"
        "- **Induction** and **duplicate token** are measured on random tokens said twice, all "
        "other statistics on your sentence.\n"
        "- A large weight says where a head looks, not what the model concludes from it."
    )

with st.expander("The code that computed these numbers"):
    source.show("attention_core/attend.py", "attend")
    source.show("attention_core/analysis/contributions.py", "contributions")
