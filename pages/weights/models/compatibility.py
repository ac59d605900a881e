"""Check whether a model would load, from its config.json, folder name or Hub id."""

from __future__ import annotations

import streamlit as st

from pretrained import compatibility
from pretrained.hub import downloads
from pretrained.sizes import DTYPE_BYTES
from serving import models
from ui.widgets import messages

MAX_CHARACTERS = 50_000  # in a pasted config.json; published ones have fewer than 5,000


def panel() -> None:
    """Show a text field and whether that model loads, or which features aren't supported."""
    typed = st.text_area(
        "Paste its config.json, or type its folder name or Hub id",
        height=120,
        max_chars=MAX_CHARACTERS,
        key="models_question",
        placeholder='{"model_type": "llama", "hidden_size": 2048, ...}   or   organization/model',
        help="We look for folders in the directory set by ATTENTION_LAB_MODELS, and for Hub ids in "
        "the local Hub cache. This check downloads nothing.",
    ).strip()
    if not typed:
        return
    try:
        answer = (
            compatibility.check_text(typed)
            if typed.startswith("{")
            else compatibility.check_model(typed)
        )
    except ValueError as error:
        messages.show_problem(error)
        if "/" in typed and downloads.downloads_allowed():
            st.text(
                "You can also start its download below. If the model can't load, the download "
                "won't start."
            )
        return
    if not answer.loads:
        for obstacle in answer.obstacles:
            messages.show_problem(obstacle, icon=":material/block:")
        return
    size = answer.n_parameters * DTYPE_BYTES
    if problem := models.too_large_message("It", size):
        messages.show_problem(problem, icon=":material/memory:")
    else:
        st.success("This model loads.", icon=":material/check:")
    st.text(
        f"{answer.shape}. {answer.n_parameters:,} parameters, {size / 1e9:.2f} GB in float32. "
        f"{answer.where}"
    )
