"""Downloads of the page "Generated tokens": one head's rows, all arrays of the run, its code."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pages.compare.generated_tokens import step
from pages.compare.generated_tokens.run import Generation
from pages.compare.generated_tokens.step import HeadMaps
from ui.export import downloads


def show(maps: HeadMaps, step_index: int) -> None:
    """Show the page's files, code and link."""
    generation = maps.generation
    stem = f"{generation.settings.model}_generated"
    layer, head = maps.view.index
    which = "mean" if layer is None else f"layer{layer}" + ("" if head is None else f"_head{head}")
    downloads.panel(
        "generated_tokens",
        downloads.csv("Rows of this head", partial(step.all_rows, maps), f"{stem}_{which}"),
        downloads.npz("All heads, float32", partial(arrays, generation), stem),
        snippet=step.snippet(maps, step_index),
        note="The NPZ file contains the weights of all heads, the lengths ‖v W_O‖, and the "
        "log-probabilities of every step. The map has its own PNG and SVG buttons.",
    )


def arrays(generation: Generation) -> dict[str, Any]:
    """The arrays of `Trace` under their own names, plus token IDs and labels."""
    trace = generation.trace
    return {
        "weights": trace.weights.numpy(),
        "value_norms": trace.value_norms.numpy(),
        "prompt_ids": np.array(trace.prompt),
        "new_ids": np.array(trace.new),
        "logprobs": np.array(trace.logprobs, dtype=np.float32),
        "alternative_ids": trace.alternative_ids.numpy(),
        "alternative_logprobs": trace.alternative_logprobs.numpy(),
        "labels": np.array(generation.labels),
    }
