"""The controls of the page "Timing", and the question that they ask."""

from __future__ import annotations

import streamlit as st

from pages.kv_cache.timing import subjects
from pages.kv_cache.timing.subjects import (
    CONTENDERS,
    CORE_CACHED,
    CORE_UNCACHED,
    GPT2_SHAPE,
    TINY,
    Question,
)
from serving import models
from serving.limits import MAX_TIMED_REPEATS
from ui.widgets import controls
from ui.widgets.linked import linked

TOKENS = (16, 32, 64, 100, 128, 256, 512)
BOTH = [CORE_CACHED, CORE_UNCACHED]

PRESETS: dict[str, dict[str, object]] = {
    "The lecture's run, GPT-2's shape": {
        "model": GPT2_SHAPE,
        "prompt": controls.NEXT_DAY,
        "tokens": 100,
        "repeats": 1,
        "ways": list(CONTENDERS[2:]),
    },
    "Where it may not pay: tiny": {
        "model": TINY,
        "prompt": controls.NEXT_DAY,
        "tokens": 64,
        "repeats": 5,
        "ways": BOTH,
    },
    "Core beside transformers": {
        "model": TINY,
        "prompt": controls.NEXT_DAY,
        "tokens": 256,
        "repeats": 3,
        "ways": list(CONTENDERS),
    },
}


def question() -> Question:
    """The controls, and what they ask for."""
    names, ways = subjects.names(), subjects.ways()
    known = {
        title: preset
        for title, preset in PRESETS.items()
        if preset["model"] in names and set(preset["ways"]) <= set(ways)  # type: ignore[call-overload]
    }
    if known:
        st.pills(
            "Examples",
            list(known),
            key="timing_preset",
            on_change=_use_preset,
            args=(known,),
            wrap=True,
        )
    left, right = st.columns(2, gap="large")
    with left:
        prompt = controls.text("Prompt", "timing_prompt", controls.NEXT_DAY)
    with right:
        preferred = models.preferred("decoder")
        model = linked(
            st.selectbox,
            "Model",
            names,
            names.index(preferred) if preferred in names else 0,
            key="timing_model",
            help="The random ones need no weights: what a step takes depends on the shape alone. "
            "Their text means nothing.",
        )
        columns = st.columns(2)
        with columns[0]:
            n_new = linked(st.select_slider, "New tokens", TOKENS, 64, key="timing_tokens")
        with columns[1]:
            repeats = linked(
                st.select_slider,
                "Repeats",
                range(1, MAX_TIMED_REPEATS + 1),
                3,
                key="timing_repeats",
                help="The spread is that of the repeats; one has none.",
            )
        chosen = linked(
            st.multiselect, "Ways to generate, timed in turn", ways, BOTH, key="timing_ways"
        )
    return Question(model, prompt, n_new, repeats, tuple(way for way in ways if way in chosen))


def _use_preset(presets: dict[str, dict[str, object]]) -> None:
    chosen = st.session_state["timing_preset"]
    if chosen is not None:
        for name, value in presets[chosen].items():
            st.session_state[f"timing_{name}"] = value
        st.session_state["timing_preset"] = None
