"""The sections below the picture of the page "Attention without the matrix"."""

from __future__ import annotations

import streamlit as st

from pages.learn.attention_without_the_matrix import charts, recompute, traffic
from pages.learn.attention_without_the_matrix.tile_walk import TileWalk
from ui.charts.show import show
from ui.export import source, tables
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table

MOVED, KEPT, BACK = "Bytes moved", "What is kept", "The way back"
FOLDER = "pages/learn/attention_without_the_matrix/experiment"
MEMORY, BACKWARD = f"{FOLDER}/memory.py", f"{FOLDER}/backward.py"


def memory_traffic(head_size: int, causal: bool) -> None:
    """Show the bytes moved with the whole matrix and with tiles, by text length."""
    prefix = "attention_without_the_matrix"
    with st.container(horizontal=True, gap="medium"):
        n_tokens = linked(
            st.select_slider, "Tokens T", traffic.LENGTHS, 8192, key=f"{prefix}_tokens", width=220
        )
        queries = linked(
            st.select_slider,
            "Queries per tile",
            traffic.TILE_SIZES,
            128,
            key=f"{prefix}_many_queries",
            width=150,
        )
        keys = linked(
            st.select_slider,
            "Keys per tile",
            traffic.TILE_SIZES,
            64,
            key=f"{prefix}_many_keys",
            width=150,
        )
        kind = linked(
            st.segmented_control,
            "Number format",
            list(traffic.BYTES),
            default="float32",
            required=True,
            key=f"{prefix}_numbers",
        )
    setting = traffic.TileSetup(n_tokens, head_size, traffic.BYTES[kind], (queries, keys), causal)
    left, right = st.columns([3, 4], gap="large")
    with left:
        show(charts.traffic_chart, traffic.curves(setting), n_tokens, key=f"{prefix}_traffic")
    with right:
        plain_table(traffic.summary(setting), "Both methods")
        st.text(traffic.notice(setting))
        st.markdown(
            ":small[We assume that whatever one step passes to the next goes through the large "
            "memory, and that access to the fast memory is free.]"
        )
        with st.expander("Every tensor that is read or written, and the code"):
            pieces = traffic.pieces(setting)
            plain_table(pieces, "Tensors read and written", max_rows=250)
            tables.download("Download (CSV)", pieces, "bytes_moved.csv", key=f"{prefix}_csv")
            source.show_lines(MEMORY, "in_tiles", "keys seen", "total keys", "transfers")


def saved_memory(walk: TileWalk) -> None:
    """Show which values are kept, and recompute the weights of a query from them."""
    left, right = st.columns(2, gap="large")
    with left:
        plain_table(recompute.saved_tensors(walk), "Tensors kept besides q, k and v")
        st.markdown(
            "A fused kernel such as PyTorch's `scaled_dot_product_attention` returns only the "
            "output, because the weights are never all in memory. So servers that use one can't "
            "show weights. To see them, recompute them or use attention with the matrix: "
            "`attn_implementation='eager'` in transformers, `attend` here."
        )
    with right:
        last = len(walk.labels) - 1
        query = controls.number(
            "Recompute the weights of query",
            "attention_without_the_matrix_query",
            len(walk.labels),
            last,
        )
        table, summary = recompute.recompute_row(walk, query)
        st.text(summary)
        forms = {"exp(score − m) / l": "{:.6f}", "weight with the whole matrix": "{:.6f}"}
        plain_table(table, "Recomputed weights of the query", forms, max_rows=230)
    source.show_lines(BACKWARD, "recompute_weights", "scores", "weights")


def backward_pass(walk: TileWalk) -> None:
    """Show the gradients of the head, computed tile by tile."""
    st.markdown(
        "Training needs gradients, and gradients need every weight again. So each tile recomputes "
        "its weights from q, k, m and l, which takes five matrix products instead of four. Here "
        "the output itself serves as the gradient from the layers above."
    )
    table, summary = recompute.gradients(walk)
    forms = {"largest difference from autograd": "{:.1e}"}
    plain_table(table, "Gradients without the matrix", forms)
    st.text(summary)
    source.show_lines(
        BACKWARD,
        "gradients",
        "weights",
        "weight gradients",
        "score gradients",
        "value gradients",
        "query gradients",
        "key gradients",
    )
