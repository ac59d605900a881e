"""The parts of the page "What is recomputed" below its picture."""

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

PARTS = COUNTED, LAST_ROW, WAY_BACK, QUERIES, STEPS, ENCODER = (
    "Counted",
    "The last row",
    "The way back",
    "Queries",
    "All steps",
    "An encoder",
)


def counted(view: pictures.StepView) -> str:
    """What this step computes, with the cache and without: of the part that is chosen and given."""
    scope = linked(
        st.segmented_control,
        "Count",
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
    """All rows of logits beside the only one that decides."""
    st.subheader("Only the last row of the logits is used")
    st.text(pictures.agreement(view))
    left, right = st.columns([6, 5], gap="large")
    with left:
        tensors([pictures.logits(view)], key="what_is_recomputed_logits")
    with right, st.container(height=tall, border=False):  # room for the rows of all steps
        plain_table(pictures.predictions(view), "What each row predicts")


def way_back(view: pictures.StepView) -> None:
    """What the last row of logits was computed from, back to keys and values."""
    st.subheader("Back from that row: what it needs")
    st.markdown(
        "From the pass **behind the cache**, which ran the newest token alone: one row of "
        "logits (1), one context row (2), one row of weights (3) and scores (4), one query (5), "
        "all values (6) and all keys (7). New are three vectors: the token's state times W_Q, "
        "W_K and W_V (rotary models then turn query and key). The boxed rows were kept."
    )
    tensors(pictures.way_back(view), key="what_is_recomputed_way")
    st.markdown("**The two passes compared, in this step**")
    plain_table(
        pictures.checks(view),
        "The two passes compared",
        {"largest difference": "{:.1e}", "largest value": "{:.3f}"},
    )


def queries(view: pictures.StepView, tall: int) -> None:
    """Which rows later steps read, and what changes where old rows are overwritten."""
    st.subheader("Why not cache the queries?")
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.markdown("**How many later steps, so far, read each row in this head**")
        with st.container(height=tall, border=False):  # room for the rows of all steps
            plain_table(counts.read_counts(view), "How often each row is read")
    with right:
        st.markdown("**Old rows overwritten: what becomes of the last context row**")
        plain_table(counts.spoiled(view), "What overwritten rows change")
        source.step(CORE, "rows_read", "rows read")


def all_steps(view: pictures.StepView) -> None:
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
    plain_table(totals[list(counts.TOTALS_SHOWN)], "Every step so far")


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
            plain_table(numbers, "Both models", {"moved by": "{:.2e}"}, most=300)
            tables.download(
                "Both models (CSV)", numbers, "old_rows.csv", key="what_is_recomputed_old_csv"
            )
    return contrast
