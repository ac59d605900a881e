"""Downloads of the page "Heads": files with all numbers, and its code."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pages.compare.heads import values
from pages.compare.heads.values import MapOptions
from serving.runs import Run
from ui.export import downloads
from ui.widgets import head_pairs
from ui.widgets.head_choice import HeadChoice

SNIPPET = """\
import torch
import pretrained

model = pretrained.load({model!r}, device="cpu")
tokens = model.tokenizer.encode({text})
with torch.inference_mode():
    records = model.core(torch.tensor([tokens.ids]), record=True).records
weights = records[{layer}].weights[0, {head}]  # (T, S) of layer {layer}, head {head}
print(weights[{query}, {key}])  # {query_label} -> {key_label}
"""


def show(run: Run, choice: HeadChoice, reading: MapOptions, pair: tuple[int, int]) -> None:
    """Show the page's files, code and link."""
    head = f"{run.model}_layer{choice.layer}_head{choice.head}"
    downloads.panel(
        "heads",
        downloads.csv("This head", partial(head_pairs.pairs, run, choice), head),
        downloads.npz("All heads", partial(arrays, run, reading), f"{run.model}_heads"),
        snippet=snippet(run, choice, pair),
        note="The files contain the full float32 weights of the forward pass, before any keys are "
        "hidden. The NPZ file also has queries, keys, values and the lengths ‖v W_O‖. If you hide "
        "keys or show contributions, it also includes the values on screen. Each picture has its "
        "own PNG and SVG buttons.",
    )


def arrays(run: Run, reading: MapOptions) -> dict[str, Any]:
    """All arrays of the run (float32) and its tokens."""
    result: dict[str, Any] = {
        "weights": run.weights,
        "q": run.q,
        "k": run.k,
        "v": run.v,
        "value_norms": run.value_norms,
        "token_ids": np.array(run.tokens.ids),
        "tokens": np.array(run.tokens.labels),
    }
    if reading != MapOptions():
        result["values_as_shown"] = values.values(run, reading)
        result["keys_left_out"] = np.array(reading.hidden, dtype=np.int64)
    return result


def snippet(run: Run, choice: HeadChoice, pair: tuple[int, int]) -> str:
    """Python code that recomputes the open head and prints the weight of the selected pair."""
    query, key = pair
    return SNIPPET.format(
        model=run.model,
        text=ascii(run.tokens.text),
        layer=choice.layer,
        head=choice.head,
        query=query,
        key=key,
        query_label=ascii(run.tokens.labels[query]),
        key_label=ascii(run.tokens.labels[key]),
    )
