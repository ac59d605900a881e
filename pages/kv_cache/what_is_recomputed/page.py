"""What is recomputed: which numbers of a step the step before had, and which a cache must keep."""

import streamlit as st

from pages.kv_cache.what_is_recomputed import counts, pictures, run, sections, take_away
from serving import models
from serving.limits import MAX_GROWN_TOKENS, MIN_GROWN_TOKENS
from ui.canvas.tensors import tensors
from ui.export import source, tables
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.parts import heading, parts
from ui.widgets.run_form import run_form
from ui.widgets.settings import settings
from ui.widgets.stepper import stepper

CORE, ATTEND = (
    "pages/kv_cache/what_is_recomputed/experiment.py",
    "attention_core/attend.py",
)

st.title("What is recomputed")
st.markdown("For each new token a decoder reads the whole text again. What was there a step ago?")

if not models.ready("decoder"):
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
    messages.problem(error)
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
            help="Each takes a step. Every row is drawn, so the text stays short.",
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
        growth = run.watched(run.GrowthSettings(entry.spec.name, prompt, n_new))
except models.LOAD_ERRORS as error:
    messages.problem(error)
    messages.end_page()
if growth is None:
    messages.end_page()

n_steps = len(growth.steps)
if st.session_state.get("what_is_recomputed_step", 1) > n_steps:  # of a longer run before
    st.session_state["what_is_recomputed_step"] = n_steps
with step_place:
    step_index = stepper("Step", n_steps, min(3, n_steps), key="what_is_recomputed_step") - 1
view = pictures.StepView(growth, step_index, layer, head, column)
tall = tables.height_of(growth.n_rows)

tensors(pictures.matrices(view), key="what_is_recomputed_matrices")
st.text(pictures.text(view))
st.text(pictures.sentence(view))
st.markdown(f":small[{run.anywhere(growth, step_index)}]")

shown = parts("what_is_recomputed_part", sections.PARTS)
scope = counts.HEAD
if sections.COUNTED in shown:
    heading(sections.COUNTED, shown)
    scope = sections.counted(view)
if sections.LAST_ROW in shown:
    sections.last_row(view, tall)
if sections.WAY_BACK in shown:
    sections.way_back(view)
if sections.QUERIES in shown:
    sections.queries(view, tall)
if sections.STEPS in shown:
    sections.all_steps(view)
contrast = sections.encoder(growth) if sections.ENCODER in shown else None

take_away.show(view, scope, contrast)

with st.expander("How to read this"):
    st.markdown(
        "- **Only when a trained model writes.** Training has the whole text at once, and changes "
        "the weights: nothing to keep.\n"
        "- **Boxed and hatched**: the step before computed the same. Its last row and column are "
        "new. Above the diagonal of the scores, new ones are computed and masked at once.\n"
        "- **Point at a score, a weight or a number of the context**: what it was computed from is "
        "framed, and the sum stands below in digits.\n"
        "- **Why old rows stay**: the causal mask. No token sees a later one, in any layer, so "
        "nothing that comes later can change its row. 0 means the same bits; a difference of "
        "up to 0.00001 of the largest value is rounding, from sums in another order.\n"
        "- **Queries**: the last context row reads one query, its own. Without a cache, old "
        "queries still have work: they make the old rows from which the *next layer* takes its "
        "keys and values. With those kept, too, nobody asks for an old query again.\n"
        "- **Read later**: a row is set to “not a number”, which spoils all that is computed from "
        "it; a clean result never read it.\n"
        "- **Multiplications** are those of the matrix products; keys and values count once for "
        "all heads that share them. The uncached pass makes all rows of logits.\n"
        "- **Linear?** Rows grow with the square of the text without a cache, linearly with it. A "
        "step with it still compares its query with all keys, so attention's own share stays "
        "quadratic: small here, large in long texts."
    )

with st.expander("The code that computed this"):
    source.step(CORE, "repeated", "largest change")
    source.show(CORE, "_step")
    source.show(ATTEND, "attend")
