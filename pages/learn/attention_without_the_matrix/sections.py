"""The parts of the page "Attention without the matrix" below its picture."""

from __future__ import annotations

import streamlit as st

from pages.learn.attention_without_the_matrix import again, charts, traffic
from pages.learn.attention_without_the_matrix.walked import TileWalk
from ui.charts.show import show
from ui.export import source, tables
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table

MOVED, KEPT, BACK = "Bytes moved", "What is kept", "The way back"
FOLDER = "pages/learn/attention_without_the_matrix/experiment"
MEMORY, BACKWARD = f"{FOLDER}/memory.py", f"{FOLDER}/backward.py"


def moved(head_size: int, causal: bool) -> None:
    """Bytes moved with the whole matrix and in tiles, over the length of a text."""
    prefix = "attention_without_the_matrix"
    with st.container(horizontal=True, gap="medium"):
        n_tokens = linked(
            st.select_slider, "Tokens T", traffic.LENGTHS, 8192, key=f"{prefix}_tokens", width=220
        )
        queries = linked(
            st.select_slider,
            "Queries of a tile",
            traffic.TILE_SIZES,
            128,
            key=f"{prefix}_many_queries",
            width=150,
        )
        keys = linked(
            st.select_slider,
            "Keys of a tile",
            traffic.TILE_SIZES,
            64,
            key=f"{prefix}_many_keys",
            width=150,
        )
        kind = linked(
            st.segmented_control,
            "Numbers",
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
        plain_table(traffic.summary(setting), "Both ways")
        st.text(traffic.notice(setting))
        st.markdown(
            ":small[The model of the memory: what one step hands to the next is written to the "
            "large memory and read there; what fits into the fast memory costs nothing. A tile of "
            "queries stays, and keys and values pass by.]"
        )
        with st.expander("Every tensor that is read or written, the code"):
            pieces = traffic.pieces(setting)
            plain_table(pieces, "Every tensor that is read or written", most=250)
            tables.download("Download (CSV)", pieces, "bytes_moved.csv", key=f"{prefix}_csv")
            source.step(MEMORY, "in_tiles", "keys seen", "total keys", "transfers")


def kept(walked: TileWalk) -> None:
    """What is left of the matrix, and the weights of a query made again from it."""
    left, right = st.columns(2, gap="large")
    with left:
        plain_table(again.kept_tensors(walked), "Kept beside q, k and v")
        st.markdown(
            "The weights never exist together. So a fused kernel, such as torch's "
            "`scaled_dot_product_attention`, returns the output alone, and servers built on one "
            "cannot show weights. To see them, compute them again, or run attention with the "
            "matrix: `attn_implementation='eager'` in transformers, `attend` here."
        )
    with right:
        last = len(walked.labels) - 1
        query = controls.number(
            "Query whose weights are made again",
            "attention_without_the_matrix_query",
            len(walked.labels),
            last,
        )
        table, said = again.row_again(walked, query)
        st.text(said)
        forms = {"exp(score − m) / l": "{:.6f}", "weight with the whole matrix": "{:.6f}"}
        plain_table(table, "The weights of a query, made again", forms, most=230)
    source.step(BACKWARD, "weights_again", "scores", "weights")


def way_back(walked: TileWalk) -> None:
    """The gradients of the head, with its weights computed again tile by tile."""
    st.markdown(
        "Training needs gradients, and these need every weight once more. With tiles no weight was "
        "kept: each tile computes its weights again from q, k, m and l. That is one product more, "
        "five instead of four. The gradient that comes from above is here the output itself."
    )
    table, said = again.gradients(walked)
    forms = {"largest difference from autograd": "{:.1e}"}
    plain_table(table, "Gradients without the matrix", forms)
    st.text(said)
    source.step(
        BACKWARD,
        "gradients",
        "weights",
        "weight gradients",
        "score gradients",
        "value gradients",
        "query gradients",
        "key gradients",
    )
