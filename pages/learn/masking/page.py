"""Masking and dropout: hiding the future, and dropping weights at random."""

import streamlit as st

from pages.learn.masking import numbers
from pages.learn.masking.sections import NINE, SENTENCE, SIX, chosen_scores, show_all
from ui.widgets.linked import linked
from ui.widgets.quiz import quiz

st.title("Masking and dropout")
st.markdown(
    "A text model learns to predict the next token, so no token may see the ones that come after "
    "it. A score of **−∞** hides them completely. With any other number, some of the future can "
    "leak through."
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
            "- **Rows** are queries and **columns** are keys. exp(−∞) is exactly 0, so a forbidden "
            "key gets no weight, and the other weights still sum to 1.\n"
            "- If you set weights to 0 **after the softmax**, a row no longer sums to 1. Dividing "
            "the row by its sum fixes that, because the common denominator cancels.\n"
            "- **0.0 is a score** like any other. Since exp(0) = 1, it doesn't hide anything.\n"
            "- **Dropout** is used only in training. Afterwards a row no longer sums to 1. But the "
            "average of n draws approaches the original weights, and the error shrinks like 1/√n."
        )
quiz("masking", numbers.questions)
