"""The page "What is recomputed": repeated work, and what a cache must store."""

import streamlit as st

from pages.kv_cache.what_is_recomputed import counts, downloads, pictures, run, sections
from serving import models
from serving.limits import MAX_GROWN_TOKENS, MIN_GROWN_TOKENS
from ui.canvas.tensors import tensors
from ui.export import source, tables
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.run_form import run_form
from ui.widgets.section_picker import section_heading, section_picker
from ui.widgets.settings import settings
from ui.widgets.stepper import stepper

CORE, ATTEND = (
    "pages/kv_cache/what_is_recomputed/experiment.py",
    "attention_core/attend.py",
)

st.title("What is recomputed")
st.markdown(
    "Without a KV cache, the model repeats most of its work for every new token. The boxed numbers "
    "were already computed one step ago."
)

if not models.available("decoder"):
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    prompt = controls.text("Prompt", "what_is_recomputed_prompt", controls.NEXT_DAY)
with right:
    entry = controls.model("what_is_recomputed_model", "decoder", prefer="gpt2")
try:
    with st.spinner("Loading the model …"):
        config = models.get(entry.spec.name).core.config
except models.LOAD_ERRORS as error:
    messages.show_problem(error)
    messages.end_page()
with right, settings():
    with run_form("what_is_recomputed", "what_is_recomputed_tokens"):
        n_new = linked(
            st.slider,
            "New tokens",
            MIN_GROWN_TOKENS,
            MAX_GROWN_TOKENS,
            6,
            key="what_is_recomputed_tokens",
            help="Each new token is one step. Every row is drawn, so the text has to be short.",
        )
    layer = controls.number("Layer", "what_is_recomputed_layer", config.n_layers, 5, part="layer")
    head = controls.number("Head", "what_is_recomputed_head", config.n_heads, 0, part="head")
    column = controls.number(
        "First column drawn",
        "what_is_recomputed_column",
        max(config.d_head - pictures.N_COLUMNS + 1, 1),
        0,
        help=f"A head has {config.d_head} columns; {pictures.N_COLUMNS} of them are drawn.",
    )
step_place, progress_place = st.columns([3, 2], gap="small", vertical_alignment="bottom")
try:
    with progress_place:
        growth = run.growth_with_progress(run.GrowthSettings(entry.spec.name, prompt, n_new))
except models.LOAD_ERRORS as error:
    messages.show_problem(error)
    messages.end_page()
if growth is None:
    messages.end_page()

n_steps = len(growth.steps)
if st.session_state.get("what_is_recomputed_step", 1) > n_steps:  # selected in a longer run
    st.session_state["what_is_recomputed_step"] = n_steps
with step_place:
    step_index = stepper("Step", n_steps, min(3, n_steps), key="what_is_recomputed_step") - 1
view = pictures.StepView(growth, step_index, layer, head, column)
tall = tables.height_for(growth.n_rows)

tensors(pictures.matrices(view), key="what_is_recomputed_matrices")
st.text(pictures.text(view))
st.text(pictures.sentence(view))
st.markdown(f":small[{run.largest_changes_sentence(growth, step_index)}]")

shown = section_picker("what_is_recomputed_part", sections.PARTS)
scope = counts.HEAD
if sections.COUNTS in shown:
    section_heading(sections.COUNTS, shown)
    scope = sections.count_section(view)
if sections.LAST_ROW in shown:
    sections.last_row(view, tall)
if sections.DEPENDENCIES in shown:
    sections.dependencies(view)
if sections.QUERIES in shown:
    sections.queries(view, tall)
if sections.STEPS in shown:
    sections.all_steps(view)
if sections.ENCODER in shown:
    sections.encoder(growth)

downloads.show(view, scope)

with st.expander("How to read this"):
    st.markdown(
        "- A KV cache **only helps when a trained model generates text**. Training processes the "
        "whole text in a single pass and then changes the weights, so there's nothing to reuse.\n"
        "- **Boxed and hatched** numbers were already computed one step ago. The last row and "
        "column are new. New scores above the diagonal are computed and then masked.\n"
        "- **Point at a score, a weight or a context number** to frame the numbers it was computed "
        "from. The calculation appears below.\n"
        "- **Old rows don't change** because of the causal mask: in every layer, a token only sees "
        "earlier tokens, so later ones can't affect its row. A difference of 0 means that every "
        "bit is the same. Differences up to 0.00001 of the largest value come from rounding, "
        "because the sums are computed in a different order.\n"
        "- The last context row reads only one **query**, its own. Without a cache, old queries "
        "are still needed to compute the old rows, from which the *next layer* takes its keys and "
        "values. If those are cached too, old queries are never needed again.\n"
        "- **Read later**: to test whether a row is read, we set it to “not a number” (NaN). "
        "Everything computed from it becomes NaN, so a result that stays clean never read the "
        "row.\n"
        "- **Multiplications** counts those of the matrix products. Keys and values are counted "
        "once for all heads that share them. The uncached pass computes all rows of logits.\n"
        "- **Is it linear?** Without a cache, the number of rows grows with the square of the text "
        "length; with it, linearly. A cached step still compares its query with all keys, so the "
        "work of attention itself stays quadratic. That part is small here and large in long texts."
    )

with st.expander("The code that computed this"):
    source.show_lines(CORE, "change_of_old_part", "largest change")
    source.show(CORE, "_step")
    source.show(ATTEND, "attend")
