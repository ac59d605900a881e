"""Cheaper models: experts, drafted tokens, rule-based rewards and distillation."""

import pandas as pd
import streamlit as st

from pages.learn.cheaper_models import distillation, drafts, experts, rewards
from pages.learn.cheaper_models.questions import questions
from serving import models, runs
from serving.limits import MAX_CHEAPER_TOKENS
from ui.frame import sections
from ui.widgets import controls, messages
from ui.widgets.plain_table import plain_table
from ui.widgets.quiz import quiz
from ui.widgets.section_picker import section_heading, section_picker

IDEAS = (experts, drafts, rewards, distillation)
ELSEWHERE = {
    "kv_cache/variants": "Latent attention: Variants",
    "generate/generate": "8-bit weights: Generate",
}
SOURCES = pd.DataFrame(
    {
        "idea": [experts.NAME, drafts.NAME, rewards.NAME, distillation.NAME],
        "technical name": [
            "mixture of experts (MoE)",
            "multi-token prediction (MTP)",
            "reinforcement learning (RL)",
            "distillation",
        ],
        "papers": [
            "Shazeer et al. 2017; Zhang et al. 2022 (splitting a trained MLP)",
            "Gloeckle et al. 2024; Leviathan et al. 2023 (drafts)",
            "Williams 1992 (REINFORCE)",
            "Hinton et al. 2015",
        ],
        "used by DeepSeek in": ["DeepSeekMoE 2024", "V3, 2024", "GRPO 2024; R1, 2025", "R1, 2025"],
    }
)

st.title("Cheaper models")
st.markdown(
    "**DeepSeek**'s models are cheap because each token uses only a small part of the network."
)
if not models.available("decoder"):
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = controls.text("Text", "cheaper_models_text", controls.ANIMAL)
with right:
    entry = controls.model("cheaper_models_model", "decoder", prefer="gpt2")
shown = section_picker("cheaper_models_part", tuple(idea.NAME for idea in IDEAS))
try:
    with st.spinner("Loading the model …", show_time=True):
        run = runs.run(entry.spec.name, text, MAX_CHEAPER_TOKENS, "this lesson")
except models.LOAD_ERRORS as error:
    messages.show_problem(error)
    messages.end_page()
for idea in IDEAS:
    if idea.NAME in shown:
        section_heading(idea.NAME, shown)
        try:
            idea.draw(run)
        except models.LOAD_ERRORS as error:
            messages.show_problem(error)

with st.container(horizontal=True, gap="small"):
    for page, label in ELSEWHERE.items():
        st.page_link(sections.script(page), label=label, icon=sections.ICONS[page])
with st.expander("How to read this"):
    plain_table(SOURCES, "Where the ideas come from")
    st.markdown(
        "**KL divergence** measures in bits how wrong the student's probabilities are. It's 0 if "
        "they match the teacher's."
    )
quiz("cheaper_models", questions)
