"""The last sections of the page "What is recomputed"."""

import streamlit as st

from pages.kv_cache.what_is_recomputed import charts, counts, pictures, run
from serving import models
from ui.charts.show import show
from ui.export import source, tables
from ui.widgets import messages

CORE = "attention_core/experiments/kv_cache/what_is_recomputed.py"


def queries(view: pictures.View, tall: int) -> None:
    """Which rows later steps read, and what changes where old rows are overwritten."""
    st.subheader("Why not cache the queries?")
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.markdown("**How many later steps, so far, read each row in this head**")
        with st.container(height=tall, border=False):  # room for the rows of all steps
            st.dataframe(
                counts.read_counts(view),
                hide_index=True,
                height="content",
                key="what_is_recomputed_reads",
            )
    with right:
        st.markdown("**Old rows overwritten: what becomes of the last context row**")
        st.dataframe(
            counts.spoiled(view),
            hide_index=True,
            height="content",
            key="what_is_recomputed_spoiled",
        )
        source.step(CORE, "rows_read", "read_rows[name] =")


def all_steps(view: pictures.View) -> None:
    """The counts of every step so far, as a chart and as a table."""
    st.subheader("All steps so far")
    left, right = st.columns(2, gap="large")
    totals = counts.totals(view.growth)
    with left:
        rows = charts.rows_so_far(totals)
        show(charts.totals_chart, rows, view.step_index, key="what_is_recomputed_totals")
    with right:
        st.markdown(counts.totals_summary(view, totals))
        tables.download(
            "All steps (CSV)", totals, "what_is_recomputed_steps.csv", key="what_is_recomputed_csv"
        )
    st.dataframe(
        totals.style.format(thousands=","),
        hide_index=True,
        height="content",
        column_order=counts.TOTALS_SHOWN,
        key="what_is_recomputed_all",
    )


def encoder(growth: run.Growth) -> counts.Contrast | None:
    """What a new token changes in an encoder and in a decoder; None where a model is missing."""
    st.subheader("Why an encoder cannot do this")
    contrast = None
    try:
        contrast = counts.contrast(growth)
    except models.LOAD_ERRORS as error:
        messages.problem(error)
    else:
        st.text(counts.contrast_summary(growth, contrast))
        numbers = counts.contrast_table(growth, contrast)
        show(charts.contrast_chart, numbers, key="what_is_recomputed_contrast")
        with st.expander("These numbers as a table"):
            st.dataframe(
                numbers.style.format({"moved by": "{:.2e}"}),
                hide_index=True,
                height=tables.height(numbers, 300),
                key="what_is_recomputed_contrast_table",
            )
            tables.download(
                "Both models (CSV)", numbers, "old_rows.csv", key="what_is_recomputed_old_csv"
            )
    return contrast
