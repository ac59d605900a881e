"""Heads: all attention heads of a model on one sentence, and one of them in detail."""

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
from ui.widgets.linked import linked
from ui.widgets.pair import choose_pair
from ui.widgets.placeholder import placeholder
from ui.widgets.section_picker import section_heading, section_picker
from ui.widgets.settings import settings

MOSAIC = "heads_mosaic"  # the key of the mosaic
PAIR, LINES, NUMBERS = "One pair of tokens", "Lines from query to key", "All heads in numbers"
PARTS = (PAIR, LINES, NUMBERS, *([history.TITLE] if history.has_history() else []))

st.title("Heads")
st.markdown(
    "Every head reads the same sentence in its own way. Here are all heads of a model; click one "
    "to open it."
)

if not models.available():
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
    messages.show_problem(f"{entry.spec.title}: {error}")
    messages.end_page()

n_heads = entry.spec.n_heads
with right, settings():
    order = choices.order(table)
    reading = choices.map_options(run)
    drawing = choices.drawing_options()


def show(number: int) -> None:
    """Open the head that was clicked."""
    st.session_state["heads_layer"], st.session_state["heads_head"] = divmod(number, n_heads)
    st.session_state["heads_sheet"] = True


@st.fragment
@messages.page_guard()
def pictures() -> None:
    """Show all heads and the open one; opening another head reruns only this fragment."""
    if MOSAIC not in st.session_state:  # a new visit to the page
        st.session_state.pop("heads_sheet", None)
    all_heads, beside = st.columns([5, 4], gap="medium")
    # on a phone, the open head slides up as a sheet
    is_sheet = st.session_state.get("heads_sheet", False)
    one_head = beside.container(key="heads_sheet_open" if is_sheet else "heads_sheet_closed")
    with all_heads:
        packed = values.pack_mosaic(run, reading, name=MOSAIC)
        mosaic(packed, key=MOSAIC, on_open=show)
        st.markdown(
            f":small[{order.explanation} {packed.shape[0]} × {packed.shape[1]} heads, "
            f"{len(run.tokens)} tokens, {len(packed.data):,} bytes. These values are rounded to "
            f"{packed.levels} steps per head, within ±{packed.stated_error} of the tensor; the "
            "open head is exact.]"
        )
    with one_head, st.container(horizontal=True, vertical_alignment="bottom"):
        choice = controls.head_for_text(entry, "heads", text)
        if is_sheet:
            st.button(
                "Close",
                key="heads_close",
                help="Go back to all heads.",
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
        map_place = placeholder()
        with st.container(horizontal=True, gap="small"):
            stage = linked(
                st.select_slider,
                "Step",
                stages.STAGES,
                stages.WEIGHTS,
                key="heads_stage",
                width=100,
                help="The steps from scores to weights, in the order they're computed.",
            )
            pair = choose_pair(run, choice, "heads")
    with map_place:
        open_head.show_map(run, choice, reading, drawing, stage, pair)
    with all_heads:
        head_pairs.strongest_pair(run, choice)
        st.markdown(f":small[{choice.title} on other pages:]")
        head_links(choice, text, current_page="compare/heads", pair=TokenPair(run.tokens, *pair))
    shown = section_picker("heads_part", PARTS)
    if PAIR in shown:
        section_heading(PAIR, shown)
        open_head.show_pair(run, choice, pair)
    if LINES in shown:
        open_head.show_lines(run, choice, reading)
    if NUMBERS in shown:
        section_heading(NUMBERS, shown)
        numbers.show(table, f"{entry.spec.name}_statistics.csv")
    if history.TITLE in shown:
        section_heading(history.TITLE, shown)
        history.show()

    downloads.show(run, choice, reading, pair)


pictures()

with st.expander("How to read this"):
    st.markdown(
        "- Each **row** is a query, the token that looks. Each **column** is a key, the token it "
        "looks at. In a decoder the upper half is empty, because a query can't look ahead.\n"
        "- When a head has nothing to add, it often puts its weight on the first token, `[CLS]` or "
        "`[SEP]`. Leave out those keys to see the other weights, or switch to **contributions** "
        "to see how little such a head adds to the output.\n"
        "- A **weight** is the share of a value vector that the query takes. Its **contribution** "
        "`‖α v W_O‖` is the length of the vector that this adds to the output.\n"
        "- **Induction** and **duplicate token** are measured on random tokens repeated twice; all "
        "other statistics are measured on your sentence.\n"
        "- A large weight shows where a head looks, not what the model concludes from it."
    )

with st.expander("The code that computed these numbers"):
    source.show("attention_core/attend.py", "attend")
    source.show("attention_core/analysis/contributions.py", "contributions")
