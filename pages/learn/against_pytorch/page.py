"""Against PyTorch: the same weights through our classes and PyTorch's, values, times and memory."""

import streamlit as st

from pages.learn.against_pytorch import charts
from pages.learn.against_pytorch import comparison as lesson
from ui.canvas.tensors import tensors
from ui.charts.show import show
from ui.export import source, tables
from ui.text.number_text import either, written
from ui.widgets import controls, messages, quiz
from ui.widgets.linked import linked
from ui.widgets.parts import parts
from ui.widgets.settings import settings
from ui.widgets.visit import unused_text_note

CORE = "pages/learn/against_pytorch/experiment.py"
WEIGHTS = "The same attention weights"
PRODUCTS = "How many products"
KEPT = "What is kept for the backward pass"
TIMES = "How long it takes"


def ask() -> None:
    """Have a new series measured in the run that follows."""
    st.session_state["against_pytorch_request"] = lesson.request(
        st.session_state["against_pytorch_time_width"],
        st.session_state["against_pytorch_time_tokens"],
    )


st.title("Against PyTorch")
st.markdown(
    "Five ways to compute one layer of attention give the same numbers. They differ in how many "
    "products they make, what they keep, and how long they take."
)

with st.container(horizontal=True), settings():
    width = linked(st.select_slider, "Width C", lesson.WIDTHS, 24, key="against_pytorch_width")
    heads = linked(st.select_slider, "Heads H", lesson.HEADS, 4, key="against_pytorch_heads")
    tokens = linked(st.slider, "Tokens T", 1, lesson.MAX_TOKENS, 10, key="against_pytorch_tokens")
    batch = linked(st.slider, "Batch B", 1, lesson.MAX_BATCH, 2, key="against_pytorch_batch")
    seed = controls.seed("Seed of weights and input", "against_pytorch_seed", 123)
    causal = linked(st.toggle, "Causal mask", True, key="against_pytorch_causal")
    bias = linked(st.toggle, "Bias on q, k, v", False, key="against_pytorch_bias")

unused_text_note("random numbers")
setting = lesson.ComparisonSetup(width, heads, tokens, batch, seed, causal, bias)
side = None
try:
    side = lesson.side(setting)
except ValueError as error:
    fitting = either(lesson.divisors(width), "head")
    messages.problem(f"{error}. Each head gets an equal part of the width: take {fitting}.")

if side is not None:
    st.header("The same outputs")
    tensors(side.outputs, key="against_pytorch_outputs", decimals=4)
    st.markdown("Largest difference from ours over the **whole** output")
    st.table(side.differences.set_index("way"))
    with st.expander("The lines that compute and compare them"):
        source.step(CORE, "TorchModule.forward", "module output")
        source.step(CORE, "SplitWithKernel.forward", "context")
        source.step(CORE, "largest_difference", "difference")

shown = parts("against_pytorch_part", (WEIGHTS, PRODUCTS, KEPT, TIMES))
if side is not None and WEIGHTS in shown:
    st.header(WEIGHTS)
    tensors(side.weights, key="against_pytorch_weights", decimals=4)
    st.markdown(f"Largest difference of all weights: **{written(side.weights_difference, '.1e')}**")
    source.step(CORE, "compare", "averaged weights")
if side is not None and PRODUCTS in shown:
    st.header(PRODUCTS)
    st.table(side.products.set_index("way"))
    st.markdown(
        f"For q, k, v the wrapper multiplies three times a head: 3 × {heads} = {3 * heads}. Weight "
        "splits need 3 products, a fused matrix 1. The other columns were counted in a real call."
    )
    source.step(
        CORE,
        "FusedAttention.forward",
        "projection",
    )
if side is not None and KEPT in shown:
    st.header(KEPT)
    st.table(side.memory.set_index("way"))
    st.markdown(
        "Measured: bytes that autograd holds after one call, parameters aside. By formula, one "
        f"scores matrix of all heads has B·H·T·T·4 = **{side.scores_bytes:,}** bytes. PyTorch's "
        "kernel works through it in pieces and keeps none of it."
    )
    source.step(
        CORE,
        "kept_for_backward",
        "square",
    )
if TIMES in shown:
    st.header(TIMES)
    boxes = st.columns([2, 2, 1], vertical_alignment="bottom")
    with boxes[0]:
        linked(
            st.select_slider,
            "Width to time",
            lesson.TIME_WIDTHS,
            768,
            key="against_pytorch_time_width",
        )
    with boxes[1]:
        linked(
            st.select_slider,
            "Tokens to time",
            lesson.TIME_TOKENS,
            64,
            key="against_pytorch_time_tokens",
        )
    with boxes[2]:
        st.button("Measure", on_click=ask, key="against_pytorch_measure", type="primary")
    progress = st.empty()
    request = st.session_state.get("against_pytorch_request", lesson.FIRST)
    measured = lesson.series(request, progress.text)
    hint = " Press Measure for the sizes above and more heads." if request == lesson.FIRST else ""
    progress.text(f"Measured at {measured.at:%H:%M:%S} UTC: {measured.value.how}.{hint}")
    show(charts.times_chart, measured.value.medians, key="against_pytorch_chart")
    st.dataframe(measured.value.table, hide_index=True, height="content")
    tables.download(
        "Download every measurement (CSV)",
        measured.value.rows,
        "against_pytorch_times.csv",
        key="against_pytorch_csv",
    )

with st.expander("How to read this"):
    st.markdown(
        "- **Differences** near 10⁻⁷ are rounding: sums in another order. A wrong mask or weight "
        "would show in the first decimals.\n"
        "- **Counted**: products by a weight matrix that reached PyTorch's dispatcher in a call "
        "with gradients. **Scores, sums**: products of queries with keys and of weights with "
        "values. The kernel does both, and the softmax, in one call.\n"
        "- **Times**: a point is the median, the bar goes from fastest to slowest. All ways run in "
        "turns. The wrapper grows with its heads: many small products, one after the other. The "
        "others grow far less.\n"
        "- Fusing saves calls, not arithmetic: on a CPU it hardly shows. Seconds depend on the "
        "machine; read the ratios."
    )

with st.expander("The code of the fused version"):
    source.show(CORE, "FusedAttention")

quiz.quiz("against_pytorch", lesson.questions)
