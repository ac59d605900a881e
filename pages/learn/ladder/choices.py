"""The sentence that the visitor chooses on the page "Ladder"."""

import streamlit as st

from pages.learn.ladder import matrix, stages
from serving import models
from ui.widgets import controls, messages
from ui.widgets.linked import linked

INPUTS = SIX, NINE, MATRIX, SENTENCE = (
    "six tokens",
    "nine tokens",
    "my matrix",
    "my sentence",
)


def chosen_sentence(kind: str) -> stages.Sentence | None:
    """The rows that the page works on; None, after a message, where there are none."""
    if kind in (SIX, NINE):
        return stages.example("journey" if kind == SIX else "boy")
    if kind == MATRIX:
        rows = matrix.editor("ladder_matrix", "1 0 0; 0 2 0; 1 1 0; 0 0 -1")
        return None if rows is None else stages.matrix(rows)
    if not models.ready():
        st.warning(models.NO_WEIGHTS, icon=":material/download:")
        return None
    entry = controls.model("ladder_model", None, prefer="encoder")
    text = linked(
        st.text_input,
        "Sentence, up to 12 tokens",
        "The cat sleeps on the mat",
        key="ladder_text",
        max_chars=300,
    )
    st.markdown(
        ":small[Rows of the model's token table, every column used, the first 8 drawn. The "
        "matrices come from the seed, they are not the model's own.]"
    )
    try:
        with st.spinner(f"Loading {entry.spec.title} …", show_time=True):
            return stages.embedded(entry.spec.name, text)
    except models.LOAD_ERRORS as error:
        messages.problem(error)
        return None
