"""Controls of the page "Timing", and the request that they define."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from serving import models
from serving.limits import MAX_TIMED_REPEATS
from serving.timing import timed_contenders
from serving.timing.timed_contenders import (
    CORE_CACHED,
    CORE_INT8,
    CORE_UNCACHED,
    FIRST,
    FULL_PRECISION,
    LECTURE,
    TINY,
    TimingRequest,
)
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.settings import settings

TOKENS = (16, 32, 64, 100, 128, 256, 512)
BOTH = [CORE_CACHED, CORE_UNCACHED]

PRESETS: dict[str, dict[str, object]] = {
    "The lecture's run, GPT-2's shape": {
        "model": LECTURE.model,
        "prompt": LECTURE.prompt,
        "tokens": LECTURE.n_new,
        "repeats": LECTURE.repeats,
        "ways": list(LECTURE.contenders),
    },
    "Tiny model, where it may not pay off": {
        "model": TINY,
        "prompt": controls.NEXT_DAY,
        "tokens": 64,
        "repeats": 5,
        "ways": BOTH,
    },
    "Core against transformers": {
        "model": TINY,
        "prompt": controls.NEXT_DAY,
        "tokens": 256,
        "repeats": 3,
        "ways": [*FULL_PRECISION, CORE_INT8],
    },
}


def question() -> tuple[TimingRequest, DeltaGenerator]:
    """Show the controls; return the request and a container for the button."""
    names, ways = timed_contenders.model_names(), timed_contenders.available_contenders()
    known = {
        title: preset
        for title, preset in PRESETS.items()
        if preset["model"] in names and set(preset["ways"]) <= set(ways)  # type: ignore[call-overload]
    }
    left, right = controls.row()
    with left:
        prompt = controls.text(
            "Prompt",
            "timing_prompt",
            FIRST.prompt,
            examples=known,
            on_select=_use_preset,
        )
    with right:
        model = linked(
            st.selectbox,
            "Model",
            names,
            names.index(FIRST.model) if FIRST.model in names else 0,
            key="timing_model",
            format_func=models.title,
            label_visibility="collapsed",
        )
    with right, settings():
        n_new = linked(st.select_slider, "New tokens", TOKENS, FIRST.n_new, key="timing_tokens")
        repeats = linked(
            st.select_slider,
            "Repeats",
            range(1, MAX_TIMED_REPEATS + 1),
            FIRST.repeats,
            key="timing_repeats",
            help="With more than one repeat, you can see how much the times vary.",
        )
        choice = linked(
            st.multiselect,
            "Ways to generate",
            ways,
            [way for way in ways if way in FIRST.contenders],
            key="timing_ways",
        )
        st.markdown(
            ":small[The random models write meaningless text, but the time per step depends only "
            "on the shape.]"
        )
    contenders = tuple(way for way in ways if way in choice)
    return TimingRequest(model, prompt, n_new, repeats, contenders), right


def _use_preset(choice: str) -> None:
    for name, value in PRESETS[choice].items():
        st.session_state[f"timing_{name}"] = value
