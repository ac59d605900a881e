"""The page "Watch heads form": a small model learns to copy repeats while you watch."""

import streamlit as st

from pages.learn.watch_heads_form import sections, watch
from pages.learn.watch_heads_form.questions import questions
from pages.learn.watch_heads_form.recording import DROPOUTS, HEADS, TrainingSettings
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.quiz import quiz
from ui.widgets.section_picker import section_heading, section_picker
from ui.widgets.settings import settings

VARY, SAME = "They vary", "The same every time"

st.title("Watch heads form")
st.markdown(
    "Once you've read “Harry Potter”, a second “Harry” makes you expect “Potter”. No single head "
    "can do that, but **two layers of heads learn it on their own**. Press **Play** and watch them "
    "form."
)

left, right = controls.row(2, 3, align="bottom")
with left:
    distances = linked(
        st.segmented_control,
        "Repeat distances",
        (VARY, SAME),
        default=VARY,
        required=True,
        key="watch_heads_form_distances",
        help="The number of tokens between a segment and its repeat. If it's the same every time, "
        "the model can cheat. What does it learn then?",
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
            help="The heads of a layer share 64 numbers, so more heads means smaller heads.",
        )
        seed = controls.seed(
            "Seed",
            "watch_heads_form_seed",
            0,
            help="Sets the random initial weights and sequences. The same seed gives the same run.",
        )
        mask = linked(
            st.toggle,
            "Mask",
            True,
            key="watch_heads_form_mask",
            help="If off, every token also sees the tokens after it.",
        )
        scale = linked(
            st.toggle,
            "Scale",
            True,
            key="watch_heads_form_scale",
            help="If off, scores aren't divided by the square root of the head size.",
        )
        dropout = linked(
            st.select_slider,
            "Dropout",
            DROPOUTS,
            0.0,
            key="watch_heads_form_dropout",
            help="The share of attention weights that each training step sets to 0.",
        )
chosen = TrainingSettings(n_heads, seed, mask, scale, dropout, distances == SAME)
with row:
    watch.buttons(chosen)
recording = watch.show(chosen)

shown = section_picker("watch_heads_form_part", sections.PARTS)
if sections.SCORES_PART in shown:
    section_heading(sections.SCORES_PART, shown)
    sections.explain_scores()
if sections.STORED_PART in shown:
    section_heading(sections.STORED_PART, shown)
    sections.stored_runs()
if sections.NUMBERS in shown:
    section_heading(sections.NUMBERS, shown)
    sections.numbers(recording)

with st.expander("How to read this"):
    st.markdown(
        "- **The texts** are 48 random tokens (32 in the picture) from a vocabulary of 32. A "
        "segment of 6 to 22 tokens appears twice. The loss counts only the repeat, because the "
        "rest can't be predicted.\n"
        "- **Unseen distances**: 9, 13, 17 and 21 never occur in training.\n"
        "- **The model** has two attention layers, 64 numbers per token, rotary positions, and no "
        "feed-forward network.\n"
        "- **Large models** do the same: their loss drops when induction heads form ([Olsson et "
        "al. 2022](https://arxiv.org/abs/2209.11895)). [Elhage et al. "
        "2021](https://transformer-circuits.pub/2021/framework/index.html) explain why it takes "
        "two layers. On the *Heads* page, you can sort a real model's heads by induction score."
    )
quiz("watch_heads_form", questions)
