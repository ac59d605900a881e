"""Against PyTorch: outputs, time and memory of our attention and PyTorch's."""

import streamlit as st

from pages.learn.against_pytorch import charts
from pages.learn.against_pytorch import comparison as lesson
from ui.canvas.tensors import tensors
from ui.charts.show import show
from ui.export import source, tables
from ui.text.formatting import format_number, join_or
from ui.widgets import controls, messages, quiz
from ui.widgets.linked import linked
from ui.widgets.section_picker import section_picker
from ui.widgets.settings import settings
from ui.widgets.visit import unused_text_note

CORE = "pages/learn/against_pytorch/experiment.py"
WEIGHTS = "The same attention weights"
PRODUCTS = "How many products"
KEPT = "What is kept for the backward pass"
TIMES = "How long it takes"


def remeasure() -> None:
    """Request a new timing series for the next run."""
    st.session_state["against_pytorch_request"] = lesson.request(
        st.session_state["against_pytorch_time_width"],
        st.session_state["against_pytorch_time_tokens"],
    )


st.title("Against PyTorch")
st.markdown(
    "Five implementations of attention compute the same numbers, but they need different amounts "
    "of time and memory. The tables below compare ours with PyTorch's."
)

with st.container(horizontal=True), settings():
    width = linked(st.select_slider, "Width C", lesson.WIDTHS, 24, key="against_pytorch_width")
    heads = linked(st.select_slider, "Heads H", lesson.HEADS, 4, key="against_pytorch_heads")
    tokens = linked(st.slider, "Tokens T", 1, lesson.MAX_TOKENS, 10, key="against_pytorch_tokens")
    batch = linked(st.slider, "Batch B", 1, lesson.MAX_BATCH, 2, key="against_pytorch_batch")
    seed = controls.seed("Random seed", "against_pytorch_seed", 123)
    causal = linked(st.toggle, "Causal mask", True, key="against_pytorch_causal")
    bias = linked(st.toggle, "Bias on q, k, v", False, key="against_pytorch_bias")

unused_text_note("random numbers")
setting = lesson.ComparisonSetup(width, heads, tokens, batch, seed, causal, bias)
side = None
try:
    side = lesson.compare_setting(setting)
except ValueError as error:
    fitting = join_or(lesson.divisors(width), "head")
    messages.show_problem(
        f"{error}. Every head needs an equal share of the width, so choose {fitting}."
    )

if side is not None:
    st.header("The same outputs")
    tensors(side.outputs, key="against_pytorch_outputs", decimals=4)
    st.markdown("Largest difference from ours, over the **whole** output:")
    st.table(side.differences.set_index("implementation"))
    with st.expander("The code that computes and compares them"):
        source.show_lines(CORE, "TorchModule.forward", "module output")
        source.show_lines(CORE, "SplitWithKernel.forward", "context")
        source.show_lines(CORE, "largest_difference", "difference")

shown = section_picker("against_pytorch_part", (WEIGHTS, PRODUCTS, KEPT, TIMES))
if side is not None and WEIGHTS in shown:
    st.header(WEIGHTS)
    tensors(side.weights, key="against_pytorch_weights", decimals=4)
    st.markdown(
        "The attention weights match too. Largest difference: "
        f"**{format_number(side.weights_difference, '.1e')}**."
    )
    source.show_lines(CORE, "compare", "averaged weights")
if side is not None and PRODUCTS in shown:
    st.header(PRODUCTS)
    st.table(side.products.set_index("implementation"))
    st.markdown(
        f"For q, k and v the wrapper needs three products per head: 3 × {heads} = {3 * heads}. "
        "Weight splits need 3 in total, and a fused matrix needs only 1. The other columns were "
        "counted during a real call."
    )
    source.show_lines(
        CORE,
        "FusedAttention.forward",
        "projection",
    )
if side is not None and KEPT in shown:
    st.header(KEPT)
    st.table(side.memory.set_index("implementation"))
    st.markdown(
        "The table shows how many bytes autograd keeps after one call, without the parameters. "
        f"The scores of all heads alone take B·H·T·T·4 = **{side.scores_bytes:,}** bytes. "
        "PyTorch's kernel computes them in pieces and doesn't keep any of them."
    )
    source.show_lines(
        CORE,
        "saved_for_backward",
        "square",
    )
if TIMES in shown:
    st.header(TIMES)
    boxes = st.columns([2, 2, 1], vertical_alignment="bottom")
    with boxes[0]:
        linked(
            st.select_slider,
            "Timing: width",
            lesson.TIME_WIDTHS,
            768,
            key="against_pytorch_time_width",
        )
    with boxes[1]:
        linked(
            st.select_slider,
            "Timing: tokens",
            lesson.TIME_TOKENS,
            64,
            key="against_pytorch_time_tokens",
        )
    with boxes[2]:
        st.button(
            "Measure times", on_click=remeasure, key="against_pytorch_measure", type="primary"
        )
    progress = st.empty()
    request = st.session_state.get("against_pytorch_request", lesson.FIRST)
    measured = lesson.series(request, progress.text)
    hint = (
        " Press Measure times to test the sizes above with more head counts."
        if request == lesson.FIRST
        else ""
    )
    progress.text(f"Measured at {measured.at:%H:%M:%S} UTC: {measured.value.method_text}.{hint}")
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
        "- **Differences** near 10⁻⁷ are rounding errors, because the implementations add numbers "
        "in a different order. A wrong mask or weight would change the first decimals.\n"
        "- **Counted** is the number of products with a weight matrix during one call. **Scores, "
        "sums** counts the products of queries with keys and of weights with values. PyTorch's "
        "kernel computes both, and the softmax, in one call.\n"
        "- **Times**: points are medians, and bars run from the fastest to the slowest call. The "
        "wrapper gets slower with every head because it runs many small products one after the "
        "other. The other implementations slow "
        "down far less.\n"
        "- Fusing saves calls, not arithmetic, so it makes little difference on a CPU. Times "
        "depend on the machine, so compare ratios instead."
    )

with st.expander("The code of the fused version"):
    source.show(CORE, "FusedAttention")

quiz.quiz("against_pytorch", lesson.questions)
