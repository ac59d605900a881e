"""Settings of the page "Generated tokens": sampling, and which weights to show."""

from __future__ import annotations

import streamlit as st

from pages.compare.generated_tokens import run, step
from pretrained import ModelSpec
from serving.limits import MAX_TRACED_TOKENS, MIN_TRACED_TOKENS
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.run_form import run_form


def request(model: str, prompt: str) -> run.SamplingSettings:
    """Show the sampling settings in a form with a button that starts the run."""
    keys = [f"generated_tokens_{name}" for name in ("new", "temperature", "seed")]
    with run_form("generated_tokens", *keys):
        n_new = linked(
            st.slider,
            "New tokens",
            MIN_TRACED_TOKENS,
            MAX_TRACED_TOKENS,
            24,
            key="generated_tokens_new",
        )
        temperature = controls.temperature(
            "generated_tokens_temperature",
            help="0 always picks the most likely token, and the seed has no effect.",
        )
        seed = controls.seed("Seed", "generated_tokens_seed", 0, help="No effect at temperature 0.")
    return run.SamplingSettings(model, prompt, n_new, temperature, seed if temperature else 0)


def view(spec: ModelSpec) -> step.HeadView:
    """Controls for which weights to show."""
    which = linked(
        st.selectbox, "Weights of", [step.ONE, step.LAYER, step.ALL], key="generated_tokens_which"
    )
    layer = controls.number("Layer", "generated_tokens_layer", spec.n_layers, 17, part="layer")
    head = controls.number("Head", "generated_tokens_head", spec.n_heads, 5, part="head")
    without_first = linked(
        st.toggle,
        "Leave out the first token",
        key="generated_tokens_without",
        help="Hide the first token's weight and divide the other weights of each row by their sum. "
        "Only the picture changes; the model used all weights.",
    )
    return step.HeadView(which, layer, head, without_first)
