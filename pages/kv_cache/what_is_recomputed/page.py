"""What is recomputed: which numbers of a step the step before had, and which a cache must keep."""

import streamlit as st

from pages.kv_cache.what_is_recomputed import counts, pictures, run, sections, take_away
from serving import models, visit
from serving.limits import MAX_GROWN_TOKENS, MIN_GROWN_TOKENS
from ui.canvas.tensors import tensors
from ui.export import source
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.run_form import run_form
from ui.widgets.settings import settings
from ui.widgets.stepper import stepper

CORE, ATTEND = (
    "attention_core/experiments/kv_cache/what_is_recomputed.py",
    "attention_core/attend.py",
)

st.title("What is recomputed")
st.markdown("For each new token a decoder reads the whole text again. What was there a step ago?")

if not models.ready("decoder"):
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    st.stop()

left, right = controls.row()
with left:
    prompt = controls.text("Prompt", "what_is_recomputed_prompt", controls.NEXT_DAY)
with right:
    entry = controls.model("what_is_recomputed_model", "decoder", prefer="decoder")
try:
    with st.spinner("Loading the model …"):
        config = models.get(entry.spec.name).core.config
except models.LOAD_ERRORS as error:
    messages.problem(error)
    st.stop()
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
    layer = controls.number(
        "Layer", "what_is_recomputed_layer", config.n_layers, 5, part=visit.LAYER
    )
    head = controls.number("Head", "what_is_recomputed_head", config.n_heads, 0, part=visit.HEAD)
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
        growth = run.watched(run.Settings(entry.spec.name, prompt, n_new))
except models.LOAD_ERRORS as error:
    messages.problem(error)
    st.stop()
if growth is None:
    st.stop()

n_steps = len(growth.steps)
if st.session_state.get("what_is_recomputed_step", 1) > n_steps:  # of a longer run before
    st.session_state["what_is_recomputed_step"] = n_steps
with step_place:
    step_index = stepper("Step", n_steps, min(3, n_steps), key="what_is_recomputed_step") - 1
view = pictures.View(growth, step_index, layer, head, column)
tall = pictures.table_height(growth.n_rows)

tensors(pictures.matrices(view), key="what_is_recomputed_matrices")
st.text(pictures.text(view))
st.text(pictures.sentence(view))
st.markdown(f":small[{run.anywhere(growth, step_index)}]")
source.step(CORE, "repeated", "return (now")

st.subheader("Counted")
scope = linked(
    st.segmented_control,
    "Count",
    list(counts.SCOPES),
    default=counts.HEAD,
    required=True,
    key="what_is_recomputed_scope",
)
table = counts.step_table(view, scope)
st.markdown(counts.step_summary(view, table, scope))
st.dataframe(
    table.style.format(thousands=","),
    hide_index=True,
    height="content",
    key="what_is_recomputed_counts",
)

st.subheader("Only the last row of the logits is used")
st.text(pictures.agreement(view))
left, right = st.columns([6, 5], gap="large")
with left:
    tensors([pictures.logits(view)], key="what_is_recomputed_logits")
with right, st.container(height=tall, border=False):  # room for the rows of all steps
    st.dataframe(
        pictures.predictions(view).style.format({"probability": "{:.4f}"}),
        hide_index=True,
        height="content",
        key="what_is_recomputed_predictions",
    )

st.subheader("Back from that row: what it needs")
st.markdown(
    "From the pass **behind the cache**, which ran the newest token alone: one row of logits (1), "
    "one context row (2), one row of weights (3) and scores (4), one query (5), all values (6) "
    "and all keys (7). New are three vectors: the token's state times W_Q, W_K and W_V (rotary "
    "models then turn query and key). The boxed rows were kept."
)
tensors(pictures.way_back(view), key="what_is_recomputed_way")
st.markdown("**The two passes compared, in this step**")
st.dataframe(
    pictures.checks(view).style.format(
        {"largest difference": "{:.1e}", "largest value": "{:.3f}"}, thousands=","
    ),
    hide_index=True,
    height="content",
    key="what_is_recomputed_checks",
)

sections.queries(view, tall)
sections.all_steps(view)
contrast = sections.encoder(growth)

with st.expander("Take it away"):
    take_away.show(view, scope, contrast)

with st.expander("How to read this", expanded=True):
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
    source.show(CORE, "_step")
    source.show(ATTEND, "attend")
