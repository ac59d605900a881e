"""Ladder: self-attention in seven steps, one at a time, each containing the one before."""

import streamlit as st

from pages.learn.ladder import choices, stages
from ui.canvas.tensors import tensors
from ui.export import source, tables
from ui.text.isolated import isolated
from ui.text.number_text import difference, written
from ui.widgets import messages
from ui.widgets.linked import linked
from ui.widgets.parts import heading, parts
from ui.widgets.quiz import quiz
from ui.widgets.settings import settings
from ui.widgets.visit import unused_text_note

st.title("Ladder")
st.markdown(
    "Multi-head attention is dot products plus six small steps, each for what the rung before it "
    "does not do as well."
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
        place = choices.place(len(sentence.labels), options.get("n_heads", 1))

if kind != choices.SENTENCE:
    unused_text_note("rows of numbers from the lectures or of your own", "under “my sentence”")
rung = None
if sentence is not None:
    try:
        rung = stages.climb(name, sentence, **options)
    except ValueError as error:
        messages.problem(error)
if rung is not None and sentence is not None and place is not None:
    head, i, j = place
    count = len(sentence.labels)
    st.subheader(f"Rung {stages.RUNGS.index(name) + 1} of {len(stages.RUNGS)}: {name}")
    st.markdown(f"**New:** {stages.NEW[name]}")
    dropout = options.get("dropout", 0.0)
    drawn = stages.stages(rung, sentence.labels, (head, i, j), dropout)
    places = [st.container()]
    while len(places) < len(drawn):  # the first in a line of its own, the others in pairs
        places += st.columns(2, gap="small")
    for number, (stage, stage_place) in enumerate(zip(drawn, places, strict=False)):
        with stage_place:
            tensors(stage.panels, key=f"ladder_stage_{number}", link="ladder")

    st.markdown(
        f"**Check:** equal to {stages.CHECKS[name]}; the largest difference is "
        f"**{difference(rung.difference)}**."
    )
    shown = parts("ladder_part", (SEARCH, BY_HAND, SOFTMAX, CODE))
    if SEARCH in shown:
        heading(SEARCH, shown)
        asking = isolated(sentence.labels[i])
        st.text(
            f"“{asking}” asks with its query. The keys that answer, best match first, and the "
            "values they hand over:"
        )
        matches = stages.search(rung, head, i, sentence.labels)
        st.dataframe(matches, hide_index=True, height=tables.height(matches, 178))
        mixed = written(matches["weight × first number"].sum(), ".4f")
        is_lost = bool((matches["weight"] == 0).all())
        lost = " Dropout has taken all weights of this row." if is_lost else ""
        st.text(
            f"The column “weight × first number” adds up to {mixed}, the first number of the "
            f"context vector.{lost}"
        )
    if BY_HAND in shown:
        st.header(BY_HAND)
        table, total, cell = stages.by_hand(rung, head, i, j)
        terms, both_ways = st.columns(2, gap="large")
        with terms:
            st.dataframe(table, height="content")
            st.markdown(f"Sum of the products **{total:.6f}**, cell of the tensor **{cell:.6f}**.")
        with both_ways:
            pair = stages.asymmetry(rung, head, i, j)
            there, back = (written(way, ".4f") for way in (pair.i_to_j, pair.j_to_i))
            st.markdown(
                f"Token {i} for token {j}: **{there}**. Token {j} for token {i}: "
                f"**{back}**. A score is xᵢ M xⱼ with M = {stages.BETWEEN[name]}. Without two "
                "matrices both ways give the same score. Here M and its mirror image Mᵀ differ by "
                f"at most **{pair.largest:.4f}**."
            )
            tensors([pair.matrix], key="ladder_between")
    if SOFTMAX in shown:
        st.header(SOFTMAX)
        times = linked(
            st.select_slider, "Multiply the chosen row of scores by", TIMES, 100, key="ladder_times"
        )
        weights, verdict = stages.three_ways(rung, head, i, times, sentence.labels)
        st.dataframe(weights, hide_index=True, height=tables.height_of(count))
        st.markdown(
            f"{verdict} The stable way subtracts the row's maximum first. Dividing by the sum "
            f"ignores the factor, and fails for negative scores. {stages.before_softmax(rung)}"
        )
        way = st.columns(2)
        for column, function in zip(way, ("naive_softmax", "stable_softmax"), strict=True):
            with column:
                source.show("pages/learn/ladder/experiment/softmaxes.py", function)

    with st.expander("How to read this"):
        st.markdown(
            "- A **query** asks, a **key** says what a token can be found by, a **value** is what "
            "it hands over, as in a search.\n"
            "- A score is one dot product, and one matrix product, such as x·xᵀ, makes all scores "
            "at once: row i and row j make cell (i, j). A Python loop over all pairs gives the "
            "same numbers and takes much longer.\n"
            "- A row of weights sums to 1 (not after dropout). The context mixes the values with "
            "them.\n"
            "- **Point at a number**: the numbers it was computed from are framed, lines lead to "
            "them, and the sum stands below in digits.\n"
            "- The **mask** is a buffer (`register_buffer`): it moves to the GPU with the layer, "
            "and training does not change it. **No bias** is added to queries, keys and values "
            "here: a score then comes from the words alone.\n"
            "- The framed cell is row i, column j. The lines of code that computed these tensors "
            "are in the part *The code*."
        )
    if CODE in shown:
        for stage in drawn:
            source.step(*stage.code)
        source.show("attention_core/ladder.py", stages.CLASSES[name])

quiz("ladder", stages.questions)
