"""What weights in fewer bits save and cost, beside the run that uses them."""

import pandas as pd
import streamlit as st

from serving import models, rounded
from ui.text.number_text import written
from ui.widgets import messages
from ui.widgets.plain_table import plain_table


def show(name: str, weights: rounded.Weights) -> None:
    """The price of a form of a model's weights, measured once on a fixed text."""
    try:
        with st.spinner("Reading the fixed text with both …", show_time=True):
            price = rounded.price(name, weights)
    except models.LOAD_ERRORS as error:
        messages.problem(error)
        return
    st.markdown(
        f"**The price of {weights}**, measured on a fixed text of {price.n_tokens + 1} tokens: "
        "both forms find the same next token likeliest at "
        f"**{price.n_equal} of {price.n_tokens}** places, and their logits differ by at most "
        f"**{written(price.largest_difference, '.2g')}**."
    )
    plain_table(
        pd.DataFrame(
            {
                "weights": ["float32", weights],
                "stored, MB": [price.n_bytes / 1e6, price.n_bytes_rounded / 1e6],
                "perplexity": [price.perplexity, price.perplexity_rounded],
            }
        ),
        "Both forms of the weights",
        {"stored, MB": "{:.1f}", "perplexity": "{:.3f}"},
    )
