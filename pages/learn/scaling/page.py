"""Scaling: what the size of its input does to a softmax, and why q·k is divided by √d_k."""

from functools import partial

import streamlit as st

from pages.learn.scaling import charts, softmax, variances
from pages.learn.scaling.questions import questions
from pages.learn.scaling.sections import REAL_HEAD, SIZE, rescaled_head
from ui.charts.show import show
from ui.export import source, tables
from ui.text.number_text import written
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.parts import parts
from ui.widgets.quiz import quiz

CORE = "pages/learn/scaling/experiment.py"


def use_example(name: str) -> None:
    """Put the article's logits into the box."""
    st.session_state["scaling_logits"] = softmax.ARTICLE[name]


st.title("Scaling")
st.markdown(
    "A softmax listens to **differences** between scores: large ones let a single key win, tiny "
    "ones choose nothing. Dividing q·k by √d_k keeps them at one size for heads of any size."
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
    controls.menu_of_examples(softmax.ARTICLE, "scaling_example", use_example)
with right:
    temperature = linked(
        st.select_slider,
        "Temperature: what the scores are divided by",
        softmax.TEMPERATURES,
        4.0,
        key="scaling_temperature",
        format_func="{:g}".format,
    )
try:
    result = softmax.softmaxes(softmax.parse(typed), temperature)
except ValueError as error:
    messages.problem(error)
else:
    left, right = st.columns(2, gap="large")
    with right:
        numbers = result.table.select_dtypes("floating").columns
        st.table(
            result.table.style.format(partial(written, form=".4f"), subset=numbers).hide(),
            border="horizontal",
        )
        if result.by_sum is None:
            st.info("These scores add up to 0: nothing can be divided by that.")
        elif result.logits.sum() < 0:
            st.info("Their sum is negative: divided by it, the smallest score wins.")
        source.step(CORE, "softmax_at", "weights")
    with left:
        show(charts.softmax_chart, result.rows, key="scaling_softmax_chart")
        st.table(softmax.row_numbers(result), border="horizontal", hide_index=True)
        st.markdown(
            ":small[Gradient: how much the weights change when the scores do. 1 is that of a row "
            "of equal scores.]"
        )

shown = parts("scaling_part", (SIZE, REAL_HEAD))
if SIZE in shown:
    st.header(SIZE)
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
    with st.expander("The numbers, the course's experiment, the code"):
        results = variances.at(seed, d_k)
        st.dataframe(variances.numbers(results), hide_index=True)
        st.markdown(variances.most_reaches(seed, d_k))
        st.markdown(
            f":small[{variances.N_DRAWS} draws of standard-normal Q and K with "
            f"{variances.N_TOKENS} rows each, read to their first d_k columns. Variance: mean "
            "over the draws; spread: its standard deviation from draw to draw, the bars in the "
            "chart. Gradient: all derivatives of the weights by the scores (the Jacobian of the "
            "softmax), squared and summed, and the root of the sum (its Frobenius norm), divided "
            "by that of a row of equal scores. Reaching q·k: the median gradient divided once more "
            "by the divisor, as the chain rule does on the way back to q·k.]"
        )
        left, right = st.columns(2, gap="large")
        with left:
            source.step(CORE, "softmax_jacobian", "jacobian")
            source.step(CORE, "_measure", "variances")
        with right:
            course_d_k, n_draws, n_tokens = variances.COURSE
            st.markdown(
                f"**The course's experiment** (d_k {course_d_k}, {n_draws:,} draws of {n_tokens} "
                "rows), run with this seed: "
                + "; ".join(
                    f"{name} {written(scores.variance, '.4g')} ± "
                    f"{written(scores.standard_error, '.2g')}"
                    for name, scores in variances.course(seed).items()
                )
                + ". Behind ± stands the standard error of the mean."
            )
            tables.download(
                "Download all sizes (CSV)",
                variances.everything(seed),
                f"scaling_seed{seed}.csv",
                key="scaling_csv",
            )
if REAL_HEAD in shown:
    rescaled_head()

with st.expander("How to read this"):
    st.markdown(
        "- Softmax looks at differences: 20, 21.5, 22 and 0, 1.5, 2 give the same weights. "
        "Dividing the scores by their sum is a temperature too.\n"
        "- Each of the d_k products adds a variance of 1, so q·k has variance d_k, and its "
        "standard deviation is √d_k. That is the one divisor whose line stays level.\n"
        "- A **saturated** row (one weight near 1) has almost no gradient: training cannot move "
        "it. A **uniform** row has one, but then d_k or d_k² divides it again on its way to q·k.\n"
        "- Trained q and k are not independent normal numbers. A model was trained *with* its "
        "scale; taking that away breaks it, and shows what the scale held back."
    )

quiz("scaling", questions)
