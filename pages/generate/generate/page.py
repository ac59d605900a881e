"""Generate: the same tokens with the KV cache and without it, live, timed side by side."""

import streamlit as st

from pages.generate.generate import live, price
from serving import models, rounded
from serving.limits import MAX_NEW_TOKENS
from serving.queues import GENERATIONS
from serving.race import RaceRequest
from ui.export import source
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.settings import settings

st.title("Generate")
st.markdown(
    "A decoder writes one token at a time. With a **KV cache** a step runs only the newest token "
    "against stored keys and values; without it every step runs the whole text again. "
    "Same tokens, different time: watch both race."
)

if not models.ready("decoder"):
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
        rounded.forms(),
        default="float32",
        required=True,
        key="generate_weights",
        help="How the matrices are stored. In int8 each number takes a quarter of the room, and a "
        "decode step reads a quarter of the bytes; what that costs is said below. Where the models "
        "run on a GPU there is bfloat16 too: numbers of 16 bits, and steps that are recorded once "
        "and then started with a single call.",
    )
    temperature = controls.temperature(
        "generate_temperature",
        help="0 always takes the likeliest token: then nothing is drawn, and the other three "
        "settings have no effect. Higher values flatten the distribution.",
    )
    draws = temperature > 0
    seed = controls.seed(
        "Seed",
        "generate_seed",
        0,
        disabled=not draws,
        help="The same seed draws the same tokens again.",
    )
    top_k = linked(
        st.slider,
        "Top-k",
        0,
        200,
        0,
        key="generate_top_k",
        disabled=not draws,
        help="Draw from the k likeliest tokens only. 0 keeps all.",
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
        help="Draw from the fewest likeliest tokens whose probabilities reach p. 1 keeps all.",
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
if right.button("Generate", type="primary", icon=":material/play_arrow:", key="generate_start"):
    live.start(GENERATIONS, request)
live.show(request)
if weights != "float32":
    price.show(model.spec.name, weights)

with st.expander("How to read this"):
    st.markdown(
        "- **Prefill** is the pass over the prompt, up to the first new token; every later step is "
        "**decode**. Both count in the total.\n"
        "- The clock runs around the model call only, on one thread that takes the two runs in "
        "turn, after each kind of pass has run once to warm up.\n"
        "- Without the cache a step gets slower with every token: it runs them all. With it, a "
        "step reads the weights once and the stored keys and values.\n"
        "- The **largest logit difference** compares the two runs' scores for every token of the "
        "vocabulary at every step. Rounding in float32 leaves about 0.0001; much more would be a "
        "bug. With weights in int8 the products of a step are rounded to 8 bits of mantissa, those "
        "of a long pass are not: there about 0.1 is left. In bfloat16 all products are rounded so, "
        "and a step and a long pass sum them in another order.\n"
        "- Small models and short texts gain little, and other visitors' work slows both."
    )

with st.expander("The code that runs the steps"):
    source.show("attention_core/generation.py", "_Run.steps")
