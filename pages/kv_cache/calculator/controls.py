"""Controls of the page "Calculator": the examples and the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.kv_cache.calculator.setting import LONGEST, OWN
from ui.widgets.linked import linked

if TYPE_CHECKING:
    from attention_core.costs.public_models import PublicModel


def _example(
    model: str, batch: int, context: int, memory: int, *, plain: bool = False
) -> dict[str, Any]:
    numbers = {"cache": "bfloat16, float16", "weights": "bfloat16, float16"}
    return {"model": model, "batch": batch, "context": context, "memory": memory, "plain": plain,
            **numbers}  # fmt: skip


# The values that each example sets, by the ends of the widget keys.
PRESETS: dict[str, dict[str, Any]] = {
    "Lecture: 30B": _example("The lecture's 30B", 128, 1024, 320),
    "Lecture: DeepSeek": _example("DeepSeek-V3", 1, 100_000, 1536, plain=True),
    "DeepSeek with MLA": _example("DeepSeek-V3", 1, 100_000, 1536),
    "GPT-3 at full context": _example("GPT-3 175B", 32, 2048, 640),
    "Mistral's window": _example("Mistral 7B v0.1", 8, 32_768, 24),
}


def use_preset(example: str) -> None:
    """Set the controls to an example."""
    for name, value in PRESETS[example].items():
        st.session_state[f"calculator_{name}"] = value


def choose_name() -> str:
    """Show the model menu and return the chosen name, which may be OWN."""
    names = [*_listed_models(), OWN]
    name: str = linked(
        st.selectbox,
        "Model",
        names,
        names.index("Llama-3.1 8B"),
        key="calculator_model",
        label_visibility="collapsed",
    )
    return name


def model(name: str) -> PublicModel:
    """The model of that name, or a model with the typed shapes for OWN.

    Raises: ValueError if the typed shapes are inconsistent.
    """
    return _own_shapes() if name == OWN else _listed_models()[name]


def _listed_models() -> dict[str, PublicModel]:
    from attention_core.costs.public_models import LECTURE_30B, PUBLIC_MODELS

    return {model.name: model for model in (*PUBLIC_MODELS, LECTURE_30B.model)}


def _own_shapes() -> PublicModel:
    from attention_core.costs.public_models import PublicModel

    typed = {
        "n_layers": ("Layers", 1, 1000, 32),
        "n_heads": ("Query heads", 1, 1024, 32),
        "n_kv_heads": ("Key/value heads", 1, 1024, 8),
        "head_size": ("Head size", 1, 4096, 128),
        "window": ("Window (0: none)", 0, 1_000_000, 0),
        "n_global_layers": ("Layers without a window", 0, 1000, 0),
        "latent_size": ("Latent size (0: none)", 0, 100_000, 0),
        "rope_size": ("Rotary key size (0: none)", 0, 100_000, 0),
        "millions": ("Parameters (millions)", 1, 10_000_000, 7000),
    }
    sizes = {}
    for place, (name, (label, low, high, default)) in enumerate(typed.items()):
        if place % 3 == 0:
            columns = st.columns(3)
        with columns[place % 3]:
            sizes[name] = _whole_number(label, f"calculator_{name}", low, high, default)
    millions = sizes.pop("millions")
    for name in ("window", "latent_size", "rope_size"):  # 0 means "none"
        sizes[name] = sizes[name] or None
    return PublicModel(
        name=OWN,
        family="own",
        d_model=sizes["n_heads"] * sizes["head_size"],
        n_parameters=millions * 10**6,
        context_length=LONGEST,
        source="typed here",
        **sizes,
    )


def _whole_number(label: str, key: str, low: int, high: int, default: int) -> Any:
    """A whole number from a float widget; integer widgets fail on a link with 1e400."""
    choice = linked(
        st.number_input, label, float(low), float(high), float(default), 1.0, format="%.0f", key=key
    )
    return round(choice)
