"""The memory saved and the accuracy lost by storing weights in fewer bits."""

import pandas as pd
import streamlit as st

from serving import models, reduced_precision
from ui.text.formatting import format_number
from ui.widgets import messages
from ui.widgets.plain_table import plain_table


def show(name: str, weights: reduced_precision.Weights) -> None:
    """Show the cost of a weight format, measured once on a fixed text."""
    try:
        with st.spinner("Running the fixed text with both weight formats …", show_time=True):
            price = reduced_precision.precision_cost(name, weights)
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
        return
    st.markdown(
        f"**The cost of {weights}**, measured on a fixed text of {price.n_tokens + 1} tokens: "
        "both formats predict the same next token at "
        f"**{price.n_equal} of {price.n_tokens}** positions, and their logits differ by at most "
        f"**{format_number(price.largest_difference, '.2g')}**."
    )
    plain_table(
        pd.DataFrame(
            {
                "weights": ["float32", weights],
                "stored, MB": [price.n_bytes / 1e6, price.n_bytes_rounded / 1e6],
                "perplexity": [price.perplexity, price.perplexity_rounded],
            }
        ),
        "Both weight formats",
        {"stored, MB": "{:.1f}", "perplexity": "{:.3f}"},
    )
