"""Does a model load here? Asked with a pasted config.json, a folder's name, or a hub id."""

from __future__ import annotations

import streamlit as st

from pretrained import compatibility
from pretrained.hub import downloads
from pretrained.sizes import BYTES_OF_A_NUMBER
from serving import models
from ui.widgets import messages

MAX_CHARACTERS = 50_000  # of a pasted config.json; those of published models have under 5,000


def panel() -> None:
    """The question, and the answer below it: it loads, or what the core does not build."""
    typed = st.text_area(
        "The text of its config.json, or the name of its folder, or its hub id",
        height=120,
        max_chars=MAX_CHARACTERS,
        key="models_question",
        placeholder='{"model_type": "llama", "hidden_size": 2048, ...}   or   organisation/model',
        help="A folder is looked for in the folder that the variable ATTENTION_LAB_MODELS names, a "
        "hub id in the local cache of the hub. Nothing is downloaded for the answer.",
    ).strip()
    if not typed:
        return
    try:
        answer = (
            compatibility.of_text(typed) if typed.startswith("{") else compatibility.of_name(typed)
        )
    except ValueError as error:
        messages.problem(error)
        if "/" in typed and downloads.downloads_allowed():
            st.text("Or start its download below: it is refused at once if it does not load.")
        return
    if not answer.loads:
        for obstacle in answer.obstacles:
            messages.problem(obstacle, icon=":material/block:")
        return
    size = answer.n_parameters * BYTES_OF_A_NUMBER
    if problem := models.too_large_message("It", size):
        messages.problem(problem, icon=":material/memory:")
    else:
        st.success("It loads.", icon=":material/check:")
    st.text(
        f"{answer.shape}. {answer.n_parameters:,} parameters, {size / 1e9:.2f} GB in float32. "
        f"{answer.where}"
    )
