"""The statistics of all heads as a table, with definitions in its headings."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.compare.heads import statistics
from ui.export import tables


def show(table: pd.DataFrame, file_name: str) -> None:
    """Show the table, which can be sorted by its headings, and its download."""
    headings = {
        statistic.name: st.column_config.NumberColumn(
            f"{statistic.title} ({statistic.unit})" if statistic.unit else statistic.title,
            help=statistic.definition,
            format="%.3f",
        )
        for statistic in statistics.definitions()
    }
    st.dataframe(table, hide_index=True, column_config=headings, height=tables.height(table, 320))
    tables.download("Download table (CSV)", table, file_name, key="heads_table_csv")
