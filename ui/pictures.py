"""Pictures and tables of a run that several pages show."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

import pretrained
from ui import models
from ui.attention import AttentionRun
from ui.controls import HeadChoice
from ui.heatmap import heatmap


def one_head(
    run: AttentionRun, choice: HeadChoice, *, key: str, largest: float | None = None
) -> None:
    """The heatmap of one head; `largest` is the top of a scale shared with another picture."""
    weights = run.weights[choice.layer, choice.head]
    heatmap(
        weights,
        run.tokens.labels,
        title=choice.title,
        causal=run.causal,
        largest=float(weights.max()) if largest is None else largest,
        key=key,
    )


def pairs(run: AttentionRun, choice: HeadChoice) -> pd.DataFrame:
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


def strongest_pair(run: AttentionRun, choice: HeadChoice) -> None:
    """One sentence about the strongest weight between two ordinary tokens.

    Special tokens are left out, and so is the first key of a decoder: heads with nothing to say
    rest there (Xiao et al. 2023, https://arxiv.org/abs/2309.17453).
    """
    resting = np.array(run.tokens.special)
    resting[0] |= run.causal
    table = pairs(run, choice)
    query, key = table["query position"].to_numpy(), table["key position"].to_numpy()
    ordinary = table[(query != key) & ~resting[query] & ~resting[key]]
    if ordinary.empty:
        return
    first = ordinary.iloc[0]
    aside = "the first one aside" if run.causal else "special ones aside"
    st.text(
        f"Strongest between two different tokens, {aside}: “{first['query']}” gives "
        f"{first['weight']:.3f} of its attention to “{first['key']}”."
    )


def weights_table() -> None:
    """The models that can be loaded now and where their weights come from."""
    rows = [
        {
            "model": entry.spec.title,
            "kind": entry.spec.role,
            "weights from": entry.source.kind if entry.source else "",
            "in memory": models.is_loaded(entry.spec.name),
            "layers": entry.spec.n_layers,
            "heads": entry.spec.n_heads,
            "key/value heads": entry.spec.n_kv_heads,
            "note": entry.spec.note,
        }
        for entry in pretrained.catalog()
        if entry.state == "ready"
    ]
    if rows:
        st.dataframe(pd.DataFrame(rows), hide_index=True)
    else:
        st.warning(models.NO_WEIGHTS, icon=":material/download:")
