"""Why attention: a recurrent encoder squeezes a sentence into one state; attention reads it all."""

import streamlit as st

from pages.learn.why_attention import charts, influence, reading, timing
from pages.learn.why_attention.questions import questions
from serving import measure
from ui.charts.show import show
from ui.export import source, tables
from ui.text.number_text import counted, written
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.parts import parts
from ui.widgets.quiz import quiz
from ui.widgets.settings import settings
from ui.widgets.visit import unused_text_note

CORE = "pages/learn/why_attention/experiment.py"
READ_BACK = "2. What can be read back from the state?"
AT_ONCE = "3. One after the other, or all at once?"


def again() -> None:
    """Have the times measured anew, on longer sentences too."""
    st.session_state["why_attention_round"] = measure.fresh()


st.title("Why attention")
st.markdown(
    "A recurrent encoder reads a sentence word by word and hands over **one state** of fixed size. "
    "Attention reads **every position directly**. Here a GRU, which is such an encoder, and "
    "attention read the same words, both **untrained**."
)

left, right = controls.row()
with right, settings():
    notebook = linked(
        st.toggle, "The notebook's six words, three numbers each", key="why_attention_notebook"
    )
    layer = linked(st.selectbox, "Attention layer", influence.LAYERS, key="why_attention_layer")
    width = linked(
        st.select_slider,
        "Numbers per word (d)",
        influence.WIDTHS,
        16,
        key="why_attention_width",
        disabled=notebook,
    )
    state = linked(
        st.select_slider,
        "Numbers in the state (h)",
        influence.STATES,
        32,
        key="why_attention_state",
    )
    hold = linked(
        st.slider,
        "Hold: added to the update gate",
        0.0,
        influence.MAX_HOLD,
        0.0,
        0.5,
        key="why_attention_hold",
        format="%.1f",
    )
    seed = linked(st.slider, "Seed", 0, influence.MAX_SEED, 0, key="why_attention_seed")
with left:
    text = controls.text("Sentence", "why_attention_text", controls.ANIMAL, disabled=notebook)
if notebook:
    unused_text_note("the notebook's six words")

st.header("1. What is left of the first word?")
try:
    setting = influence.setting(
        text, notebook=notebook, width=width, state=state, hold=hold, layer=layer, seed=seed
    )
    reach, grown = influence.reach(setting), influence.growth(setting)
except ValueError as error:
    messages.problem(error)
else:
    left, right = st.columns(2, gap="large")
    with left:
        show(charts.reach_chart, reach.shares, key="why_attention_reach")
        source.step(CORE, "last_state", "last state")
    with right:
        show(charts.growth_chart, grown, key="why_attention_growth")
        source.step(CORE, "influence", "gradient")
    cells = st.columns(4, gap="medium")
    sentence, handed_over = reach.numbers
    product = f"{len(reach.words)} × {setting.width} = {sentence}"
    cells[0].metric("Numbers in the sentence", product)
    cells[1].metric("Numbers in the last state", handed_over)
    cells[2].metric("Word 0 in the GRU (share)", written(reach.gru_share[0], ".2g"))
    cells[3].metric("Word 0 in attention (share)", written(reach.attention_share[0], ".2g"))
    st.markdown(
        ":small[First chart: each word of the sentence. Second: word 0 while the sentence, "
        "repeated, grows. Influence: how far the last vector moves when a word's vector moves a "
        "little: all derivatives of the one by the other, squared and summed, and the root of the "
        "sum (the Frobenius norm). Share: divided by the mean over all words (1, dashed, if all "
        "are equal).]"
    )
    with st.expander("The numbers, and the data to download"):
        rows = tables.height(reach.table, 280)
        st.dataframe(reach.table, hide_index=True, height=rows)
        tables.download("Download (CSV)", reach.table, "why_attention.csv", key="why_attention_csv")

shown = parts("why_attention_part", (READ_BACK, AT_ONCE))
if READ_BACK in shown:
    st.header(READ_BACK)
    left, right = st.columns(2, gap="large")
    parts_read = reading.reading(width, state, hold, seed)
    with left:
        show(charts.reading_chart, reading.by_position(parts_read), key="why_attention_reading")
    with right:
        back = reading.recovered(parts_read, width)
        everything = reading.READ_TOKENS * width
        st.metric("Recovered by the best linear reader", f"{back:.1f} of {everything} numbers")
        st.markdown(
            f":small[{reading.READ_SEQUENCES:,} random sequences of {reading.READ_TOKENS} "
            "tokens: the reader is fitted by least squares on half of them and judged on the "
            "rest (1: all of the token, 0: nothing). No linear reader can get more than h = "
            f"{state} numbers. Attention keeps all {everything} within reach.]"
        )
        source.step(CORE, "recoverable", "least squares")
if AT_ONCE in shown:
    st.header(AT_ONCE)
    with st.spinner("Measuring …", show_time=True):
        measured = timing.times(st.session_state.get("why_attention_round", measure.FIRST))
    times = measured.value
    left, right = st.columns(2, gap="large")
    with left:
        show(charts.times_chart, times.milliseconds, key="why_attention_times")
    with right:
        st.button(
            f"Measure again, up to {timing.MANY[-1]:,} tokens",
            icon=":material/timer:",
            key="why_attention_measure",
            on_click=again,
        )
        st.metric(
            f"Loop over attention, {timing.RATIO_AT} tokens", f"{times.ratio.median:.1f} times"
        )
        st.markdown(
            f":small[As long, in the median of {times.repeats} pairs of runs in turns; the pairs "
            f"lie between {times.ratio.low:.1f} and {times.ratio.high:.1f} times. Vectors of "
            f"{timing.TIME_WIDTH} numbers, CPU, {counted(times.threads, 'thread')}, measured at "
            f"{measured.at:%H:%M:%S} UTC.]"
        )
    st.dataframe(times.table, hide_index=True)

with st.expander("How to read this"):
    st.markdown(
        "- **GRU**: word 0 reaches the end through every later step, and each step keeps a part. "
        "Parts of parts shrink exponentially: from the last word back to the first its line on the "
        "first chart falls almost straight.\n"
        "- **Attention**: one weighted sum, one step from any word. Its share follows its weight, "
        "however far away it is. Random weights spread it evenly; training makes it choose.\n"
        "- A trained GRU learns what to **hold**. *Hold* imitates that: it remembers longer, and "
        "takes in less. The state does not get larger.\n"
        "- A GRU's T **steps** wait for each other. Attention does all positions at once, but "
        "computes T² scores: press *Measure again* to see it in the longest sentences."
    )

quiz("why_attention", questions)
