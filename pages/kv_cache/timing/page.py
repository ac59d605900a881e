"""The page "Timing": step times of generation with and without a KV cache."""

import streamlit as st

from pages.kv_cache.timing import questions, sections
from serving import models
from serving.timing import timed_contenders
from ui.export import source
from ui.widgets import messages

CORE = "attention_core/costs/step_times.py"

st.title("Timing")
st.markdown(
    "A KV cache usually makes generation faster, and the longer the text, the more time it saves. "
    "Measure how much."
)

if not models.available("decoder"):
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
if not timed_contenders.model_names():
    messages.end_page()

sections.measure(*questions.question())

with st.expander("How to read this"):
    st.markdown(
        "- The methods **alternate step by step**, and the order changes, so a busy moment on the "
        "machine affects all of them. Ratios are computed per repeat; `1.23 (1.20..1.30)` is the "
        "median and range over the repeats.\n"
        "- The **first token** comes from the pass over the prompt, which is the same work with "
        "and without a cache. Totals include it; the fit doesn't.\n"
        "- The **terms** are a least-squares fit of *constant + linear n + quadratic n²* to the "
        "median steps, ± one standard error, where n is the number of tokens so far. A term is "
        "clearly nonzero if it's more than two errors from 0. The fit assumes that the errors of "
        "different steps are independent. On a shared machine, several steps in a row can be slow, "
        "so the true errors are larger. The FLOPs next to it are counted, not fitted.\n"
        "- **Implied rates** divide a term's operations by its time. A cached step multiplies one "
        "token by every weight and mostly waits for the weights to be read, so its constant term "
        "is given in bytes per second.\n"
        "- The **growth exponent** says how total time grows from a quarter of the run to its end: "
        "1 means in proportion to the tokens, 2 means with their square. Long texts approach the "
        "lecture's *linear with a cache, quadratic without*. Short texts stay below, because "
        "reading the weights takes longer than the arithmetic.\n"
        "- **int8** stores all matrices of the core in 8 bits, with one scale per output, so a "
        "step reads a quarter of the bytes. Rounded weights give different logits, which aren't "
        "compared with the others.\n"
        "- **bfloat16 CUDA graphs** need a GPU. Weights and activations are stored in 16 bits. The "
        "kernels of a step are recorded once and then launched with a single call. The time "
        "per step includes choosing the token. These logits aren't compared either.\n"
        "- Only the model calls are timed, after a warm-up. Generation continues past an "
        "end-of-text token, so all runs have the same length. Other visitors' work runs between "
        "the steps and can slow some of them down.\n"
        "- Transformers runs with its own `DynamicCache` and PyTorch's fused attention."
    )

with st.expander("The code that alternates, fits and compares"):
    source.show(CORE, "_interleave_steps")
    source.show_lines(
        "attention_core/generation.py", "timed_pass", "start time", "forward pass", "seconds"
    )
    source.show(CORE, "fit_step_times")
    source.show(CORE, "flops_terms")
    source.show(CORE, "break_even")
    source.show(CORE, "total_exponent")
