"""Ladder: from the dot product to multi-head attention in seven steps."""

import streamlit as st

from pages.learn.ladder import choices, stages
from ui.canvas.tensors import tensors
from ui.export import source, tables
from ui.text.formatting import difference, format_number
from ui.text.isolated import isolated
from ui.widgets import messages
from ui.widgets.linked import linked
from ui.widgets.quiz import quiz
from ui.widgets.section_picker import section_heading, section_picker
from ui.widgets.settings import settings
from ui.widgets.visit import unused_text_note

st.title("Ladder")
st.markdown(
    "Start from a dot product. Six small upgrades later you have multi-head attention, and each "
    "one fixes a weakness of the one before."
)

SEARCH, BY_HAND = "A query is a search", "One score by hand"
SOFTMAX, CODE = "From scores to weights", "The code"
TIMES = (1, 2, 5, 10, 20, 50, 60, 100, 200, 500, 1000, 10_000)


name = linked(
    st.segmented_control,
    "Rung",
    stages.RUNGS,
    default="simplified",
    required=True,
    key="ladder_rung",
    label_visibility="collapsed",
    wrap=True,
)
input_place = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
with input_place:
    kind = linked(
        st.selectbox,
        "Input",
        choices.INPUTS,
        key="ladder_input",
        label_visibility="collapsed",
        width=180,
    )
sentence = choices.chosen_sentence(kind)
with input_place, settings():
    options = choices.options(name)
    place = None
    if sentence is not None:
        place = choices.chosen_cell(len(sentence.labels), options.get("n_heads", 1))

if kind != choices.SENTENCE:
    unused_text_note("numbers from the lectures or your own matrix", "under “my sentence”")
rung = None
if sentence is not None:
    try:
        rung = stages.run_rung(name, sentence, **options)
    except ValueError as error:
        messages.show_problem(error)
if rung is not None and sentence is not None and place is not None:
    head, i, j = place
    count = len(sentence.labels)
    st.subheader(f"Rung {stages.RUNGS.index(name) + 1} of {len(stages.RUNGS)}: {name}")
    st.markdown(f"**New:** {stages.NEW[name]}")
    dropout = options.get("dropout", 0.0)
    drawn = stages.stages(rung, sentence.labels, (head, i, j), dropout)
    places = [st.container()]
    while len(places) < len(drawn):  # the first one is full width, the others come in pairs
        places += st.columns(2, gap="small")
    for number, (stage, stage_place) in enumerate(zip(drawn, places, strict=False)):
        with stage_place:
            tensors(stage.panels, key=f"ladder_stage_{number}", link="ladder")

    st.markdown(
        f":small[Check: this gives the same output as {stages.CHECKS[name]}. The largest "
        f"difference is **{difference(rung.difference)}**.]"
    )
    shown = section_picker("ladder_part", (SEARCH, BY_HAND, SOFTMAX, CODE))
    if SEARCH in shown:
        section_heading(SEARCH, shown)
        token = isolated(sentence.labels[i])
        st.text(
            f"The query of “{token}” is compared with every key it may see. The table lists the "
            "best match first."
        )
        matches = stages.search(rung, head, i, sentence.labels)
        st.dataframe(matches, hide_index=True, height=tables.height(matches, 178))
        mixed = format_number(matches["weight × first number"].sum(), ".4f")
        is_lost = bool((matches["weight"] == 0).all())
        lost = " Dropout has removed all weights in this row." if is_lost else ""
        st.text(
            f"The {len(matches)} numbers under “weight × first number” add up to {mixed}, which is "
            f"the first number of the context vector.{lost}"
        )
    if BY_HAND in shown:
        st.header(BY_HAND)
        table, total, cell = stages.by_hand(rung, head, i, j)
        terms, both_ways = st.columns(2, gap="large")
        with terms:
            st.dataframe(table, height="content")
            st.markdown(
                f"The products add up to **{total:.6f}**, which matches the cell of the tensor "
                f"**{cell:.6f}**."
            )
        with both_ways:
            pair = stages.asymmetry(rung, head, i, j)
            there, back = (format_number(way, ".4f") for way in (pair.i_to_j, pair.j_to_i))
            st.markdown(
                f"Token {i} for token {j}: **{there}**. Token {j} for token {i}: "
                f"**{back}**. Every score is xᵢ M xⱼ, where M is {stages.BETWEEN[name]}. Without "
                "separate matrices for queries and keys, both scores would be the same. Here M and "
                f"its transpose Mᵀ differ by at most **{pair.largest:.4f}**."
            )
            tensors([pair.matrix], key="ladder_between")
    if SOFTMAX in shown:
        st.header(SOFTMAX)
        times = linked(
            st.select_slider, "Multiply the scores of row i by", TIMES, 100, key="ladder_times"
        )
        weights, verdict = stages.compare_softmaxes(rung, head, i, times, sentence.labels)
        st.dataframe(weights, hide_index=True, height=tables.height_for(count))
        st.markdown(
            f"{verdict} The stable softmax subtracts the row's maximum first. Dividing by the sum "
            "gives the same weights for every factor, and it fails for negative scores. "
            f"{stages.before_softmax(rung)}"
        )
        way = st.columns(2)
        for column, function in zip(way, ("naive_softmax", "stable_softmax"), strict=True):
            with column:
                source.show("pages/learn/ladder/experiment/softmaxes.py", function)

    with st.expander("How to read this"):
        st.markdown(
            "- As in a search, a **query** describes what a token is looking for, a **key** "
            "describes what it can be found by, and a **value** is the information it passes on.\n"
            "- A score is one dot product. A single matrix product such as x·xᵀ computes all the "
            "scores at the same time: cell (i, j) comes from rows i and j. A Python loop gives the "
            "same numbers but takes much longer.\n- Each row of weights sums to 1 (except after "
            "dropout). The context is the sum of the values multiplied by these weights.\n"
            "- **Point at a number** to see which numbers it was computed from. The calculation "
            "appears below.\n"
            "- “v1” and “v2” are the lectures' names for the versions with trainable matrices. "
            "“Wrapper” runs several heads one by one, and “splits” divides one wide matrix into "
            "heads.\n"
            "- The **mask** is a buffer (`register_buffer`), so it moves to the GPU with the layer "
            "but isn't trained. Queries, keys and values have **no bias** here, so a score depends "
            "only on the words.\n"
            "- The framed cell is row i, column j."
        )
    if CODE in shown:
        for stage in drawn:
            source.show_lines(*stage.code)
        source.show("attention_core/ladder.py", stages.CLASSES[name])

quiz("ladder", stages.questions)
