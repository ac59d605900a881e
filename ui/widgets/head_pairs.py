"""Show the attention weights of a head as a table and in a sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from serving.heads import HeadId, strongest_tokens
from serving.runs import Run
from ui.text.formatting import percent
from ui.text.isolated import isolated
from ui.widgets.head_choice import HeadChoice

# With this many tokens or more, most weights are too small to be visible on a linear scale.
MANY_TOKENS = 49


def pairs(run: Run, choice: HeadChoice) -> pd.DataFrame:
    """The heatmap as a table: every weight that isn't masked, largest first."""
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
    """Write a sentence about the head's `strongest_tokens` pair of tokens."""
    query, key = strongest_tokens(run, choice.layer, choice.head)
    labels, special = run.tokens.labels, run.tokens.special
    if query == key or special[query] or special[key]:
        return  # the text has fewer than two words
    weight = percent(float(run.weights[choice.layer, choice.head, query, key]))
    st.text(
        f"{HeadId(choice.layer, choice.head)}: “{isolated(labels[query])}” gives {weight} of its "
        f"attention to “{isolated(labels[key])}”."
    )
