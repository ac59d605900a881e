"""The page "Inside the cache": rows, bytes, cropping, and a full cache."""

import streamlit as st

from pages.kv_cache.inside_the_cache import (
    downloads,
    pictures,
    run,
    sections,
)
from serving import models
from serving.limits import MAX_INSIDE_TOKENS, MIN_INSIDE_TOKENS
from ui.export import source
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.progress import run_with_progress
from ui.widgets.run_form import run_form
from ui.widgets.section_picker import section_picker
from ui.widgets.settings import settings
from ui.widgets.stepper import stepper

CORE, CACHE = (
    "pages/kv_cache/inside_the_cache/experiment/recording_cache.py",
    "attention_core/cache.py",
)

st.title("Inside the cache")
st.markdown(
    "A KV cache is memory with one row per token. Each step **writes** its new rows and **reads** "
    "all rows."
)

if not models.available("decoder"):
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    prompt = controls.text("Prompt", "inside_the_cache_prompt", controls.NEXT_DAY)
with right:
    entry = controls.model("inside_the_cache_model", "decoder", prefer="gpt2")
with right, settings():
    with run_form("inside_the_cache_run", "inside_the_cache_tokens"):
        n_new = linked(
            st.slider,
            "New tokens",
            MIN_INSIDE_TOKENS,
            MAX_INSIDE_TOKENS,
            12,
            key="inside_the_cache_tokens",
        )
    layer = controls.number("Layer", "inside_the_cache_layer", entry.spec.n_layers, 8, part="layer")
    head = controls.number("KV head", "inside_the_cache_kv_head", entry.spec.n_kv_heads, 1)

request = run.CacheSettings(entry.spec.name, prompt, n_new)
step_place, progress_place = st.columns([3, 2], gap="small", vertical_alignment="bottom")
try:
    with st.spinner("Loading the model …"):
        models.get(entry.spec.name)
    with progress_place:
        recorded = run_with_progress(
            "inside_the_cache_run",
            request,
            lambda report: run.run(request, report),
            cached=run.run.is_cached(request),
            total=n_new,
            unit="tokens",
            done=lambda result: (
                f"Ran {result.n_steps} steps, and the text once without the cache, in "
                f"{result.seconds:.2f} s. {result.end_reason}"
            ),
        )
except models.LOAD_ERRORS as error:
    messages.show_problem(error)
    messages.end_page()
if recorded is None:
    messages.end_page()

n_steps = recorded.n_steps
for key in ("inside_the_cache_step", "inside_the_cache_full_step"):
    if st.session_state.get(key, 1) > n_steps:  # selected in a longer run
        st.session_state[key] = n_steps
with step_place:
    step_index = (
        stepper("Step", n_steps, min(5, n_steps), key="inside_the_cache_step") - 1
        if n_steps > 1
        else 0
    )
pictures.keys_and_values(recorded, step_index, layer, head)
# below the picture, so the picture doesn't move when the text wraps
st.text(pictures.sentence(recorded, step_index))
st.markdown(":small[In the row labels, **W** means written in this step, and **r** means read.]")

shown = section_picker("inside_the_cache_part", sections.PARTS)
if sections.BYTES in shown:
    sections.bytes_held(recorded, step_index)
if sections.STEPS in shown:
    sections.every_step(recorded, step_index)
if sections.CROP in shown:
    sections.crop_section(recorded, layer, head)
if sections.FULL in shown:
    sections.full_cache_section(recorded, layer, head)

downloads.show(recorded, step_index)

with st.expander("How to read this"):
    st.markdown(
        "- Each row of a picture is a row of memory. **W** and a frame mark the rows written in "
        "this step, and **r** marks the rows that were read. Crossed-out rows are allocated but "
        "not written yet. In the ring, **p** is the position. The color scale is the same at all "
        "steps.\n"
        "- The first step, **prefill**, writes one row per prompt token; each **decode** step "
        "writes one row. Queries aren't stored, because each one is needed only once.\n"
        "- Rotary models store keys after rotation, so a row can't be moved to a different "
        "position.\n"
        "- *Divergence* is the Kullback-Leibler divergence from the full context. To the right of "
        "the solid vertical line, the text no longer fits.\n"
        "- Keeping the first rows along with a window is the idea of StreamingLLM (Xiao et al. "
        "2023, arXiv:2309.17453). Here it's measured with a mask, and tokens keep their original "
        "positions. Its bytes are those of the visible rows."
    )

with st.expander("The code that computed this"):
    source.show_lines(
        CACHE,
        "KVCache.update",
        "new keys",
        "new values",
        "all so far",
    )
    source.show_lines(CACHE, "KVCache.crop", "new length")
    source.show_lines(CACHE, "SlidingCache._count", "oldest row")
    source.show(CORE, "compare_with_one_pass")
