"""The models that can be loaded now."""

import pandas as pd
import streamlit as st

from serving import models


def table() -> None:
    """The models that can be loaded now and where their weights come from."""
    ready = models.ready()
    rows = [
        {
            "model": entry.spec.title,
            "name": entry.spec.name,
            "kind": entry.spec.role,
            "weights from": entry.source.kind if entry.source else "",
            "layers": entry.spec.n_layers,
            "heads": entry.spec.n_heads,
            "key/value heads": entry.spec.n_kv_heads,
        }
        for entry in ready
    ]
    if rows:
        st.dataframe(pd.DataFrame(rows), hide_index=True)
        for entry in ready:
            st.text(f"{entry.spec.title}: {entry.spec.note}")
    else:
        st.warning(models.NO_WEIGHTS, icon=":material/download:")
