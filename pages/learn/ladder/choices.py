"""Controls of the page "Ladder": input, settings and a pair of tokens."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.learn.ladder import matrix, stages
from serving import models
from serving.limits import MAX_SMALL_TOKENS
from ui.widgets import controls, messages
from ui.widgets.linked import linked

INPUTS = SIX, NINE, MATRIX, SENTENCE = (
    "six tokens",
    "nine tokens",
    "my matrix",
    "my sentence",
)


def chosen_sentence(kind: str) -> stages.Sentence | None:
    """The chosen input, or None after a message if there isn't any."""
    if kind in (SIX, NINE):
        return stages.example("journey" if kind == SIX else "boy")
    if kind == MATRIX:
        rows = matrix.editor("ladder_matrix", "1 0 0; 0 2 0; 1 1 0; 0 0 -1")
        return None if rows is None else stages.matrix(rows)
    if not models.available():
        st.warning(models.NO_WEIGHTS, icon=":material/download:")
        return None
    left, right = controls.row()
    with right:
        entry = controls.model("ladder_model", None, prefer="encoder")
    with left:
        text = controls.text("Sentence", "ladder_text", "The cat sleeps on the mat")
    st.markdown(
        ":small[The inputs are the model's token embeddings. All columns are used, but only the "
        "first 8 are drawn. The matrices are random, drawn from the seed; they aren't the model's "
        "own.]"
    )
    try:
        with st.spinner(f"Loading {entry.spec.title} …", show_time=True):
            sentence = stages.embedded(entry.spec.name, text)
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
        return None
    first = controls.window("ladder_first", len(sentence.labels), MAX_SMALL_TOKENS)
    return sentence.part(first, MAX_SMALL_TOKENS)


def options(rung: str) -> dict[str, Any]:
    """The settings of a rung, as keyword arguments of `stages.run_rung`."""
    chosen: dict[str, Any] = {}
    if rung != "simplified":
        seeds = ["lecture", "123", "789", *map(str, range(1, 10))]
        seed = linked(
            st.selectbox,
            "Seed of the matrices",
            seeds,
            key="ladder_seed",
            help="The lectures use 123, except for v2 on six tokens: 789.",
        )
        chosen["seed"] = None if seed == "lecture" else int(seed)
        chosen["d_out"] = linked(st.slider, "Output size (d_out)", 1, 8, 2, key="ladder_d_out")
    if rung == "dropout":
        chosen["dropout"] = linked(st.slider, "Dropout p", 0.0, 0.9, 0.5, 0.1, key="ladder_p")
        chosen["draw"] = controls.seed("Seed of the dropout", "ladder_draw", 123)
    if rung in ("wrapper", "splits"):
        chosen["n_heads"] = linked(st.slider, "Heads", 1, 4, 2, key="ladder_heads")
        chosen["causal"] = linked(st.toggle, "Mask the future", True, key="ladder_causal")
    return chosen


def chosen_cell(n_tokens: int, n_heads: int) -> tuple[int, int, int]:
    """The chosen head, and row i and column j of the framed cell."""
    i = controls.number("Row i (query)", "ladder_i", n_tokens, 1)
    j = controls.number("Row j (key)", "ladder_j", n_tokens, 3)
    head = controls.number("Head to follow", "ladder_head", n_heads, 0) if n_heads > 1 else 0
    return head, i, j
