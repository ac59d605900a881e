"""What weights in 8 bits save and cost, beside the run that uses them."""

import pandas as pd
import streamlit as st

from serving import models, quantized
from ui.widgets import messages
from ui.widgets.plain_table import plain_table

WEIGHTS: tuple[quantized.Weights, ...] = ("float32", "int8")


def show(name: str) -> None:
    """The price of int8 for a model, measured once on a fixed text."""
    try:
        with st.spinner("Reading the fixed text with both …", show_time=True):
            price = quantized.price(name)
    except models.LOAD_ERRORS as error:
        messages.problem(error)
        return
    st.markdown(
        f"**The price of int8**, measured on a fixed text of {price.n_tokens + 1} tokens: both "
        f"forms find the same next token likeliest at **{price.n_equal} of {price.n_tokens}** "
        f"places, and their logits differ by at most **{price.largest_difference:.2g}**."
    )
    plain_table(
        pd.DataFrame(
            {
                "weights": WEIGHTS,
                "stored, MB": [price.n_bytes / 1e6, price.n_bytes_int8 / 1e6],
                "perplexity": [price.perplexity, price.perplexity_int8],
            }
        ),
        "Both forms of the weights",
        {"stored, MB": "{:.1f}", "perplexity": "{:.3f}"},
    )
