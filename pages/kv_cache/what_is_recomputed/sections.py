"""Sections of the page "What is recomputed" below its picture."""

import streamlit as st

from pages.kv_cache.what_is_recomputed import charts, counts, pictures, run
from serving import models
from ui.canvas.tensors import tensors
from ui.charts.show import show
from ui.export import source, tables
from ui.widgets import messages
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table

CORE = "pages/kv_cache/what_is_recomputed/experiment.py"

PARTS = COUNTS, LAST_ROW, DEPENDENCIES, QUERIES, STEPS, ENCODER = (
    "Counted",
    "The last row",
    "The way back",
    "Queries",
    "All steps",
    "An encoder",
)


def count_section(view: pictures.StepView) -> str:
    """Show the work of this step with and without the cache; return the chosen scope."""
    scope = linked(
        st.segmented_control,
        "Scope",
        list(counts.SCOPES),
        default=counts.HEAD,
        required=True,
        key="what_is_recomputed_scope",
    )
    table = counts.step_table(view, scope)
    st.markdown(counts.step_summary(view, table, scope))
    plain_table(table, "What this step computes")
    return scope


def last_row(view: pictures.StepView, tall: int) -> None:
    """Show all rows of logits; only the last one is used."""
    st.subheader("Only the last row of the logits is used")
    st.text(pictures.agreement(view))
    left, right = st.columns([6, 5], gap="large")
    with left:
        tensors([pictures.logits(view)], key="what_is_recomputed_logits")
    with right, st.container(height=tall, border=False):  # fits the rows of all steps
        plain_table(pictures.predictions(view), "What each row predicts")


def dependencies(view: pictures.StepView) -> None:
    """Show what the last row of logits was computed from."""
    st.subheader("What the last row is computed from")
    st.markdown(
        "With the cache, the pass runs only the newest token. The last row of logits (1) needs one "
        "context row (2), one row of weights (3) and scores (4), one query (5), all values (6) and "
        "all keys (7). Only three vectors are new: the token's hidden state times W_Q, W_K and W_V "
        "(rotary models then rotate the query and the key). The boxed rows come from the cache."
    )
    tensors(pictures.dependencies(view), key="what_is_recomputed_way")
    st.markdown("**The two passes compared, in this step**")
    plain_table(
        pictures.checks(view),
        "The two passes compared",
        {"largest difference": "{:.1e}", "largest value": "{:.3f}"},
    )


def queries(view: pictures.StepView, tall: int) -> None:
    """Show which rows later steps read, and the effect of overwriting old rows."""
    st.subheader("Why not cache the queries?")
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.markdown("**Number of later steps so far that read each row in this head**")
        with st.container(height=tall, border=False):  # fits the rows of all steps
            plain_table(counts.read_counts(view), "How often each row is read")
    with right:
        st.markdown("**The last context row after overwriting old rows**")
        plain_table(counts.spoiled_table(view), "Effect of overwriting old rows")
        source.show_lines(CORE, "rows_read", "rows read")


def all_steps(view: pictures.StepView) -> None:
    """Show the counts of all steps as a chart and a table."""
    st.subheader("All steps so far")
    left, right = st.columns(2, gap="large")
    totals = counts.totals(view.growth)
    with left:
        rows = charts.rows_so_far(totals)
        show(charts.totals_chart, rows, view.step_index, key="what_is_recomputed_totals")
    with right:
        st.markdown(counts.totals_summary(view, totals))
        tables.download(
            "Download all steps (CSV)",
            totals,
            "what_is_recomputed_steps.csv",
            key="what_is_recomputed_csv",
        )
    plain_table(totals[list(counts.TOTALS_SHOWN)], "Every step so far")


def encoder(growth: run.Growth) -> None:
    """Show what a new token changes in a decoder and in an encoder."""
    st.subheader("Why an encoder can't use a KV cache")
    try:
        contrast = counts.contrast(growth)
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
    else:
        st.text(counts.contrast_summary(growth, contrast))
        numbers = counts.contrast_table(growth, contrast)
        show(charts.contrast_chart, numbers, key="what_is_recomputed_contrast")
        with st.expander("These numbers as a table"):
            plain_table(numbers, "Both models", {"moved by": "{:.2e}"}, max_rows=300)
            tables.download(
                "Download both models (CSV)",
                numbers,
                "old_rows.csv",
                key="what_is_recomputed_old_csv",
            )
