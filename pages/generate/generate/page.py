"""The page "Generate": a live race between generation with and without a KV cache."""

import streamlit as st

from pages.generate.generate import live, precision_cost
from serving import models, reduced_precision
from serving.limits import MAX_NEW_TOKENS
from serving.queues import GENERATIONS
from serving.race import RaceRequest
from ui.export import source
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.settings import settings

st.title("Generate")
st.markdown(
    "A **KV cache** saves the model from reading the whole text again for every new token. With "
    "it, each step processes only the newest token and reuses the stored keys and values. Watch "
    "both runs race."
)

if not models.available("decoder"):
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    prompt = controls.text("Prompt", "generate_prompt", controls.NEXT_DAY)
with right:
    model = controls.model("generate_model", "decoder", prefer="gpt2")
with right, settings():
    n_new = linked(st.slider, "New tokens", 1, MAX_NEW_TOKENS, 40, key="generate_tokens")
    weights = linked(
        st.segmented_control,
        "Weights",
        reduced_precision.weight_formats(),
        default="float32",
        required=True,
        key="generate_weights",
        help="How the weight matrices are stored. In int8, each number takes a quarter of the "
        "memory and a decode step reads a quarter of the bytes; the cost in accuracy is shown "
        "below. If the models run on a GPU, you can also choose bfloat16: 16-bit numbers, and "
        "decode steps that are recorded once and then launched with a single call.",
    )
    temperature = controls.temperature(
        "generate_temperature",
        help="0 always picks the most likely token, so nothing is random and the other three "
        "settings have no effect. Higher values flatten the distribution.",
    )
    draws = temperature > 0
    seed = controls.seed(
        "Seed",
        "generate_seed",
        0,
        disabled=not draws,
        help="The same seed always draws the same tokens.",
    )
    top_k = linked(
        st.slider,
        "Top-k",
        0,
        200,
        0,
        key="generate_top_k",
        disabled=not draws,
        help="Sample only from the k most likely tokens. 0 keeps all of them.",
    )
    top_p = linked(
        st.slider,
        "Top-p",
        0.05,
        1.0,
        1.0,
        0.05,
        key="generate_top_p",
        disabled=not draws,
        help="Sample only from the most likely tokens whose probabilities add up to p. 1 keeps all "
        "of them.",
    )

request = RaceRequest(
    model=model.spec.name,
    prompt=prompt,
    max_new_tokens=n_new,
    temperature=temperature,
    top_k=top_k or None,
    top_p=top_p if top_p < 1 else None,
    seed=seed,
    weights=weights,
)
if right.button(
    "Generate text", type="primary", icon=":material/play_arrow:", key="generate_start"
):
    live.start(GENERATIONS, request)
live.show(request)
if weights != "float32":
    precision_cost.show(model.spec.name, weights)

with st.expander("How to read this"):
    st.markdown(
        "- **Prefill** is the pass over the prompt that produces the first new token. Every later "
        "step is a **decode** step. The totals include both.\n"
        "- Only the model calls are timed. The two runs alternate step by step, after a warm-up "
        "pass of each kind.\n"
        "- Without the cache, steps get slower as the text grows, because each one processes all "
        "of it. With the cache, a step reads the weights once, plus the stored keys and values.\n"
        "- The **largest logit difference** compares the two runs' scores for every token of the "
        "vocabulary at every step. Rounding in float32 leaves about 0.0001; a much larger "
        "difference would be a bug. In int8, a single step rounds its products to an 8-bit "
        "mantissa and a long pass doesn't, which leaves about 0.1. In bfloat16, all products are "
        "rounded that way, but a step and a long pass add them in different orders.\n"
        "- Small models and short texts gain little. Other visitors' work slows both runs down."
    )

with st.expander("The code that runs the steps"):
    source.show("attention_core/generation.py", "_Run.steps")
