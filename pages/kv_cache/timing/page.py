"""Timing: generation with a KV cache and without, step by step in turn, and what it took."""

import streamlit as st

from pages.kv_cache.timing import questions, sections
from serving import models
from serving.timing import subjects
from ui.export import source
from ui.widgets import messages

CORE = "attention_core/costs/step_times.py"

st.title("Timing")
st.markdown("How much time does a KV cache save, and from which length on? Measure it.")

if not models.ready("decoder"):
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
if not subjects.names():
    messages.end_page()

sections.measure(*questions.question())

with st.expander("How to read this"):
    st.markdown(
        "- **In turn**: one step of each way, then the next of each, and who goes first changes. A "
        "busy moment falls on all. Ratios are taken repeat by repeat; `1.23 (1.20..1.30)` is the "
        "median and the range of the repeats.\n"
        "- **First token**: the pass over the prompt, the same work with a cache and without. "
        "Totals include it; the fit does not.\n"
        "- **Terms**: a least-squares fit of *constant + linear n + quadratic n²* to the median "
        "steps, n being the tokens so far, ± a standard error. Within two errors of 0, a term is "
        "not clear. The errors suppose that a slow step says nothing about the next; on a shared "
        "machine several are slow in a row, and true errors are larger. The FLOPs beside it are "
        "counted, not fitted.\n"
        "- **Rates**: the time of a term against its operations. A cached step multiplies one "
        "token with every weight, so its constant is mostly the reading of the weights: hence "
        "bytes a second.\n"
        "- **Exponent**: the power with which total time grows between a quarter of the run and "
        "its end; 1 is in proportion. The lecture's *linear with a cache, quadratic without* is "
        "what long texts tend to. Short ones stay below, as reading weights hides the arithmetic.\n"
        "- **int8**: all matrices of the core in 8 bits, with one scale for each output, so that a "
        "step reads a quarter of the bytes. Rounded weights give other logits: they are not "
        "compared with the rest.\n"
        "- **bfloat16 CUDA graphs**, where there is a GPU: weights and numbers in 16 bits, and the "
        "kernels of a step recorded once and then started with a single call. The time of "
        "its step includes choosing the token. Its logits are not compared either.\n"
        "- The clock runs around the model's call alone, after a warm-up. Generation goes on past "
        "an end-of-text token, so that all runs are equally long. Other pages work meanwhile, "
        "between two steps, and so slow some.\n"
        "- Transformers runs with its own `DynamicCache` and PyTorch's fused attention."
    )

with st.expander("The code that takes turns, fits and compares"):
    source.show(CORE, "_turns")
    source.step(
        "attention_core/generation.py", "timed_pass", "start time", "forward pass", "seconds"
    )
    source.show(CORE, "fit_step_times")
    source.show(CORE, "flops_terms")
    source.show(CORE, "pays_from")
    source.show(CORE, "total_exponent")
