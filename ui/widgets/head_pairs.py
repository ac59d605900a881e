"""What the tokens of a head give each other, as a table and as a sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from serving.heads import HeadId, strongest
from serving.runs import Run
from ui.text.isolated import isolated
from ui.text.number_text import percent
from ui.widgets.head_choice import HeadChoice

# From this many tokens on most weights are so small that a linear scale shows an empty picture.
MANY_TOKENS = 49


def pairs(run: Run, choice: HeadChoice) -> pd.DataFrame:
    """Every weight that is not masked, strongest first: the heatmap as a table."""
    weights = run.weights[choice.layer, choice.head]
    rows, columns = np.tril_indices_from(weights) if run.causal else np.indices(weights.shape)
    rows, columns = rows.ravel(), columns.ravel()
    order = np.argsort(-weights[rows, columns], kind="stable")
    rows, columns = rows[order], columns[order]
    labels = np.array(run.tokens.labels, dtype=object)
    return pd.DataFrame(
        {
            "query position": rows,
            "query": labels[rows],
            "key position": columns,
            "key": labels[columns],
            "weight": weights[rows, columns],
        }
    )


def strongest_pair(run: Run, choice: HeadChoice) -> None:
    """One sentence about the pair that a head shows best, as of `strongest`."""
    query, key = strongest(run, choice.layer, choice.head)
    labels, special = run.tokens.labels, run.tokens.special
    if query == key or special[query] or special[key]:
        return  # the text has no two words
    weight = percent(float(run.weights[choice.layer, choice.head, query, key]))
    st.text(
        f"{HeadId(choice.layer, choice.head)}: “{isolated(labels[query])}” gives {weight} of its "
        f"attention to “{isolated(labels[key])}”."
    )
