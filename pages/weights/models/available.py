"""The table of models that can be loaded now."""

import pandas as pd
import streamlit as st

from serving import models
from ui.widgets import messages


def table() -> None:
    """Show the installed models, the source of their weights, and which are too large."""
    ready = models.available()
    rows = [
        {
            "model": entry.spec.title,
            "name": entry.spec.name,
            "kind": entry.spec.role,
            "weights from": entry.source.kind if entry.source else "",
            "layers": entry.spec.n_layers,
            "heads": entry.spec.n_heads,
            "key/value heads": entry.spec.n_kv_heads,
            "GB": round(models.n_bytes(entry) / 1e9, 2),
        }
        for entry in ready
    ]
    if rows:
        st.dataframe(pd.DataFrame(rows), hide_index=True)
        for entry in ready:
            st.text(f"{entry.spec.title}: {entry.spec.note}")
            if problem := models.too_large_message(entry.spec.title, models.n_bytes(entry)):
                messages.show_problem(problem, icon=":material/memory:")
        st.text(
            "GB is the model's size in memory, in float32. "
            f"A model can take up to {models.MODEL_BUDGET_BYTES / 1e9:.2f} GB here. "
            "When memory is full, the least recently used model is unloaded."
        )
    else:
        st.warning(models.NO_WEIGHTS, icon=":material/download:")
