"""Watch heads form: a small model learns to copy from a repeat, and its heads take shape."""

import streamlit as st

from pages.learn.watch_heads_form import sections, watch
from pages.learn.watch_heads_form.questions import questions
from pages.learn.watch_heads_form.recording import DROPOUTS, HEADS, TrainingSettings
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.parts import heading, parts
from ui.widgets.quiz import quiz
from ui.widgets.settings import settings

VARY, SAME = "They vary", "The same every time"

st.title("Watch heads form")
st.markdown(
    "To learn from its prompt, a model must look up what followed a token earlier. No head can do "
    "that alone. **Two layers can**, and nobody builds it in: press **Play** and watch."
)

left, right = controls.row(2, 3, align="bottom")
with left:
    distances = linked(
        st.segmented_control,
        "Distances of the repeats",
        (VARY, SAME),
        default=VARY,
        required=True,
        key="watch_heads_form_distances",
        help="How many tokens after its first copy a segment comes again. The same distance every "
        "time is a trap: what does the model learn then?",
    )
with right:
    row = st.container(horizontal=True, gap="small")
    with settings():
        n_heads = linked(
            st.select_slider,
            "Heads in each layer",
            HEADS,
            4,
            key="watch_heads_form_heads",
            help="All together have 64 numbers: more heads are smaller ones.",
        )
        seed = controls.seed(
            "Seed",
            "watch_heads_form_seed",
            0,
            help="What the weights and the sequences are drawn from. The same seed gives the same "
            "run.",
        )
        mask = linked(
            st.toggle,
            "Mask",
            True,
            key="watch_heads_form_mask",
            help="Off: every token also sees those that come after it.",
        )
        scale = linked(
            st.toggle,
            "Scale",
            True,
            key="watch_heads_form_scale",
            help="Off: scores are not divided by the root of the head size.",
        )
        dropout = linked(
            st.select_slider,
            "Dropout",
            DROPOUTS,
            0.0,
            key="watch_heads_form_dropout",
            help="The share of attention weights that a step of training leaves out.",
        )
chosen = TrainingSettings(n_heads, seed, mask, scale, dropout, distances == SAME)
with row:
    watch.buttons(chosen)
recording = watch.show(chosen)

shown = parts("watch_heads_form_part", sections.PARTS)
if sections.HOW in shown:
    heading(sections.HOW, shown)
    sections.how()
if sections.WRONG in shown:
    heading(sections.WRONG, shown)
    sections.wrong()
if sections.NUMBERS in shown:
    heading(sections.NUMBERS, shown)
    sections.numbers(recording)

with st.expander("How to read this"):
    st.markdown(
        "- **The texts**: 48 tokens (fewer in the picture), drawn from 32 different ones. A "
        "segment of 6 to 22 comes twice. The loss counts the repeat only: nobody can guess the "
        "rest.\n"
        "- **Never trained on**: distances 9, 13, 17 and 21.\n"
        "- **The model**: two attention layers of 64 numbers a token, rotary positions, and no "
        "feed-forward network.\n"
        "- **Large models** show the same: as induction heads form, the loss drops ([Olsson et al. "
        "2022](https://arxiv.org/abs/2209.11895)). Why it takes two layers: [Elhage et al. "
        "2021](https://transformer-circuits.pub/2021/framework/index.html). The page Heads can "
        "order the heads of real models by Induction."
    )
quiz("watch_heads_form", questions)
