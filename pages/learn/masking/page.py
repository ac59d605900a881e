"""Masking and dropout: how the future is hidden, and what dropping weights leaves unchanged."""

import streamlit as st

from pages.learn.masking import numbers
from pages.learn.masking.sections import NINE, SENTENCE, SIX, chosen_scores, show_all
from ui.widgets.linked import linked
from ui.widgets.quiz import quiz

st.title("Masking and dropout")
st.markdown(
    "A text model learns to guess the next token, so no token may see the ones that come after it. "
    "Minus infinity hides them completely; a number that is not low enough leaks."
)


kind = linked(
    st.segmented_control,
    "Scores of",
    [SIX, NINE, SENTENCE],
    default=NINE,
    required=True,
    key="masking_input",
    label_visibility="collapsed",
)
scores = chosen_scores(kind)
if scores is not None:
    show_all(scores)
    with st.expander("How to read this"):
        st.markdown(
            "- **Rows** ask, **columns** are asked. exp(−∞) is exactly 0, so a forbidden key gets "
            "nothing and the rest still sums to 1.\n"
            "- **Zeroing afterwards** breaks the sums; dividing repairs them, because the common "
            "denominator cancels.\n"
            "- **0.0 is a score** like any other: exp(0) = 1. It hides nothing.\n"
            "- **Dropout** acts only in training. A single row no longer sums to 1, but the "
            "average of n draws nears the undropped weights as 1/√n."
        )
quiz("masking", numbers.questions)
