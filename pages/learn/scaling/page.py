"""Scaling: how the size of the scores affects softmax, and why we divide by √d_k."""

from functools import partial

import streamlit as st

from pages.learn.scaling import charts, softmax, variances
from pages.learn.scaling.questions import questions
from pages.learn.scaling.sections import REAL_HEAD, SIZE, rescaled_head
from ui.charts.show import show
from ui.export import source, tables
from ui.text.formatting import format_number
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.quiz import quiz
from ui.widgets.section_picker import section_picker

CORE = "pages/learn/scaling/experiment.py"


def use_example(name: str) -> None:
    """Fill in one of the article's examples."""
    st.session_state["scaling_logits"] = softmax.ARTICLE[name]


st.title("Scaling")
st.markdown(
    "Softmax only sees **differences** between scores. If they're large, one key takes all the "
    "attention; if they're tiny, every key gets about the same. Longer queries and keys make q·k "
    "larger, and dividing by √d_k cancels exactly that growth."
)

st.header("1. One row of scores")
left, right = controls.row()
with left, st.container(horizontal=True, vertical_alignment="bottom"):
    typed = linked(
        st.text_input,
        "Scores (logits)",
        softmax.ARTICLE["20, 21.5, 22"],
        key="scaling_logits",
        max_chars=200,
    )
    controls.example_menu(softmax.ARTICLE, "scaling_example", use_example)
with right:
    temperature = linked(
        st.select_slider,
        "Temperature (divides the scores)",
        softmax.TEMPERATURES,
        4.0,
        key="scaling_temperature",
        format_func="{:g}".format,
    )
try:
    result = softmax.softmaxes(softmax.parse(typed), temperature)
except ValueError as error:
    messages.show_problem(error)
else:
    left, right = st.columns(2, gap="large")
    with right:
        numbers = result.table.select_dtypes("floating").columns
        st.table(
            result.table.style.format(partial(format_number, form=".4f"), subset=numbers).hide(),
            border="horizontal",
        )
        if result.by_sum is None:
            st.info("These scores add up to 0, so they can't be divided by their sum.")
        elif result.logits.sum() < 0:
            st.info("If you divide by a negative sum, the smallest score wins.")
        source.show_lines(CORE, "softmax_at", "weights")
    with left:
        show(charts.softmax_chart, result.rows, key="scaling_softmax_chart")
        st.table(softmax.row_numbers(result), border="horizontal", hide_index=True)
        st.markdown(
            ":small[The gradient shows how strongly the weights react to the scores. It's 1 for a "
            "row of equal scores and close to 0 if one key takes all the attention.]"
        )

shown = section_picker("scaling_part", (SIZE, REAL_HEAD))
if SIZE in shown:
    st.header(SIZE)
    st.markdown(
        "q·k is a sum of d_k products. If q and k are random with variance 1, each product adds "
        "1 to the variance of the sum, so the variance is d_k and the standard deviation is √d_k. "
        "Dividing by √d_k brings the variance back to 1 for every head size."
    )
    columns = st.columns([3, 1, 2], gap="medium")
    with columns[0]:
        d_k = linked(st.select_slider, "d_k", variances.D_KS, 64, key="scaling_d_k")
    with columns[1]:
        seed = linked(st.slider, "Seed", 0, 99, 0, key="scaling_seed")
    with columns[2]:
        measure = linked(st.selectbox, "Second chart", variances.MEASURES, key="scaling_measure")
    left, right = st.columns(2, gap="large")
    with left:
        show(charts.variance_chart, variances.variances(seed), d_k, key="scaling_variance_chart")
    with right:
        values = variances.values(seed, measure)
        show(charts.measure_chart, values, measure, d_k, key="scaling_measure_chart")
    with st.expander("The numbers, the course's experiment and the code"):
        results = variances.at_d_k(seed, d_k)
        st.dataframe(variances.numbers(results), hide_index=True)
        st.markdown(variances.gradient_sentence(seed, d_k))
        st.markdown(
            f":small[Each number comes from {variances.N_DRAWS} random draws of Q and K (standard "
            f"normal, {variances.N_TOKENS} rows, first d_k columns). **Variance** is the mean over "
            "the draws. **Spread** is its standard deviation between draws, shown as bars in the "
            "chart. **Gradient** is the Frobenius norm of the softmax's Jacobian, divided by that "
            "of a row of equal scores. **Reaching q·k** is the median gradient divided by the "
            "divisor, following the chain rule back to q·k.]"
        )
        left, right = st.columns(2, gap="large")
        with left:
            source.show_lines(CORE, "softmax_jacobian", "jacobian")
            source.show_lines(CORE, "_measure", "variances")
        with right:
            course_d_k, n_draws, n_tokens = variances.COURSE
            st.markdown(
                f"**The course's experiment** (d_k {course_d_k}, {n_draws:,} draws of {n_tokens} "
                "rows), run with this seed: "
                + "; ".join(
                    f"{name} {format_number(scores.variance, '.4g')} ± "
                    f"{format_number(scores.standard_error, '.2g')}"
                    for name, scores in variances.course(seed).items()
                )
                + ". The number after ± is the standard error of the mean."
            )
            tables.download(
                "Download all sizes (CSV)",
                variances.full_table(seed),
                f"scaling_seed{seed}.csv",
                key="scaling_csv",
            )
if REAL_HEAD in shown:
    rescaled_head()

with st.expander("How to read this"):
    st.markdown(
        "- Softmax depends only on differences: 20, 21.5, 22 and 0, 1.5, 2 give the same weights. "
        "Dividing the scores by their sum works like a temperature, too.\n"
        "- A row is **saturated** if one weight is close to 1. It has almost no gradient, so "
        "training can hardly change it. A **uniform** row has a gradient. But if you divided by "
        "d_k or d_k², the gradient is divided by the same number on its way back to q·k.\n"
        "- In a trained model, q and k aren't independent random numbers. The model was trained "
        "*with* its scale, so removing the scale breaks it. Section 3 shows what happens."
    )

quiz("scaling", questions)
