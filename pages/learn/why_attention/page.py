"""The page "Why attention": a recurrent encoder forgets early words, attention doesn't."""

import streamlit as st

from pages.learn.why_attention import charts, influence, readout, timing
from pages.learn.why_attention.questions import questions
from serving import measure
from ui.charts.show import show
from ui.export import source, tables
from ui.text.formatting import format_number, plural
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.quiz import quiz
from ui.widgets.section_picker import section_picker
from ui.widgets.settings import settings
from ui.widgets.visit import unused_text_note

CORE = "pages/learn/why_attention/experiment.py"
READ_BACK = "2. What can be read back from the state?"
AT_ONCE = "3. One after the other, or all at once?"


def remeasure() -> None:
    """Measure again, this time with longer sentences too."""
    st.session_state["why_attention_round"] = measure.new_round()


st.title("Why attention")
st.markdown(
    "A recurrent network squeezes a sentence into **one vector** of fixed size, so early words "
    "fade. Attention reads **every word directly**. Both networks here (a GRU and attention) are "
    "untrained, so the number of words matters, but not their meaning."
)

left, right = controls.row()
with right, settings():
    notebook = linked(st.toggle, "Use the notebook's six words", key="why_attention_notebook")
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
        "Hold (added to the update gate)",
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
    messages.show_problem(error)
else:
    left, right = st.columns(2, gap="large")
    with left:
        show(charts.reach_chart, reach.shares, key="why_attention_reach")
        source.show_lines(CORE, "last_state", "last state")
    with right:
        show(charts.growth_chart, grown, key="why_attention_growth")
        source.show_lines(CORE, "influence", "gradient")
    cells = st.columns(4, gap="medium")
    sentence, handed_over = reach.numbers
    product = f"{len(reach.words)} × {setting.width} = {sentence}"
    cells[0].metric("Numbers in the sentence", product)
    cells[1].metric("Numbers in the last state", handed_over)
    cells[2].metric("Word 0 in the GRU (share)", format_number(reach.gru_share[0], ".2g"))
    cells[3].metric("Word 0 in attention (share)", format_number(reach.attention_share[0], ".2g"))
    st.markdown(
        ":small[**Influence**: nudge a word's vector a little. How much does the final vector "
        "move? (We use the Frobenius norm of the Jacobian.) The **share** divides this by the mean "
        "over all words, so 1 (dashed) is an equal share. Left: every word of the sentence. Right: "
        "word 0, as the sentence is repeated and gets longer.]"
    )
    with st.expander("Numbers and download"):
        rows = tables.height(reach.table, 280)
        st.dataframe(reach.table, hide_index=True, height=rows)
        tables.download("Download CSV", reach.table, "why_attention.csv", key="why_attention_csv")

shown = section_picker("why_attention_part", (READ_BACK, AT_ONCE))
if READ_BACK in shown:
    st.header(READ_BACK)
    left, right = st.columns(2, gap="large")
    parts_read = readout.readout(width, state, hold, seed)
    with left:
        show(charts.readout_chart, readout.by_position(parts_read), key="why_attention_reading")
    with right:
        back = readout.recovered_dimensions(parts_read, width)
        everything = readout.READOUT_TOKENS * width
        st.metric("Recovered by the best linear reader", f"{back:.1f} of {everything} numbers")
        st.markdown(
            "A linear reader can't recover more numbers than the state has "
            f"({state}). Attention can still read all {everything}.\n\n"
            f":small[We fit the reader by least squares on half of {readout.READOUT_SEQUENCES:,} "
            f"random sequences of {readout.READOUT_TOKENS} tokens, and test it on the other "
            "half. 1 "
            "means that it recovers the whole token, 0 means nothing.]"
        )
        source.show_lines(CORE, "recoverable", "least squares")
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
            on_click=remeasure,
        )
        st.metric(
            f"GRU loop compared to attention, {timing.RATIO_AT} tokens",
            f"{times.ratio.median:.1f} times as long",
        )
        st.markdown(
            f":small[This is the median of {times.repeats} pairs of runs, which range from "
            f"{times.ratio.low:.1f} to {times.ratio.high:.1f} times. Vectors have "
            f"{timing.TIME_WIDTH} numbers. Run on the CPU with "
            f"{plural(times.threads, 'thread')}, measured at {measured.at:%H:%M:%S} UTC.]"
        )
    st.dataframe(times.table, hide_index=True)

with st.expander("How to read this"):
    st.markdown(
        "- **GRU**: word 0 has to pass through every later step, and each step keeps only a part "
        "of it. So its influence shrinks exponentially, which is almost a straight line on this "
        "logarithmic axis.\n"
        "- **Attention** is a single weighted sum, so every word is one step away. A word's share "
        "follows its attention weight, not its distance. Random weights are nearly even; training "
        "makes attention choose.\n"
        "- A trained GRU learns what to **hold**. The *Hold* slider imitates that: the state "
        "remembers longer but takes in less of each new word, because it doesn't get larger.\n"
        "- In a GRU, each **step** waits for the one before. Attention processes all positions in "
        "parallel but computes T² scores. Click *Measure again* to see the effect on long "
        "sentences."
    )

quiz("why_attention", questions)
