"""Downloads of the page "Side by side": the arrays of both maps, and its code."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pages.compare.side_by_side.comparison import WORDS, MapComparison
from serving.runs import Run
from ui.export import downloads
from ui.widgets.head_choice import HeadChoice

Runs = tuple[Run, Run]
Heads = tuple[HeadChoice, HeadChoice]

SNIPPET = """\
import torch
import pretrained
from pages.compare.side_by_side.experiment import {names}
from pretrained.tokenization.alignment import {aligned}

def head(name, text, layer, number):
    model = pretrained.load(name, device="cpu")
    tokens = model.tokenizer.encode(text)
    with torch.inference_mode():
        records = model.core(torch.tensor([tokens.ids]), record=True).records
    return tokens, records[layer].weights[0, number], model.core.config.causal

a, left, left_causal = head({left})
b, right, right_causal = head({right})
units = {aligned}(a, b).units  # groups of tokens that cover the same characters
in_a, in_b = [unit.a for unit in units], [unit.b for unit in units]
seen = visible_groups(in_a, in_a, causal=left_causal)
seen &= visible_groups(in_b, in_b, causal=right_causal)
left, right = merge_tokens(left, in_a, in_a), merge_tokens(right, in_b, in_b)
{renormalise}signed = difference(left, right, seen)
print(signed)
"""
RENORMALISE = "left, right = renormalize(left, seen), renormalize(right, seen)\n"
LARGEST = "print(left[{cell}], right[{cell}], signed[{cell}])  # the largest: {query} -> {key}\n"


def show(runs: Runs, heads: Heads, comparison: MapComparison, view: str, renormalise: bool) -> None:
    """Show the page's file, code and link."""
    downloads.panel(
        "side_by_side",
        downloads.npz(
            "Both heads and their difference",
            partial(arrays, runs, heads, comparison),
            "side_by_side",
        ),
        snippet=snippet(runs, heads, comparison, view, renormalise),
        note="The NPZ file contains the weights of both heads, both maps as drawn, and the values "
        "that were subtracted for each shared unit (float32, NaN where nothing can be compared). "
        "Each map has its own PNG and SVG buttons, and each table above has its own CSV button.",
    )


def arrays(runs: Runs, heads: Heads, comparison: MapComparison) -> dict[str, Any]:
    """The tensors of both sides, plus `left`, `right` and `difference` of the comparison."""
    tensors: dict[str, Any] = {
        "left": comparison.left,
        "right": comparison.right,
        "difference": comparison.difference,
    }
    for i, name in enumerate(("left", "right")):
        tensors |= {
            f"{name}_weights": runs[i].weights[heads[i].layer, heads[i].head],
            f"{name}_tokens": np.array(runs[i].tokens.labels),
            f"{name}_as_drawn": comparison.sides[i].values,
            f"{name}_labels_as_drawn": np.array(comparison.sides[i].labels),
            f"{name}_units": np.array(comparison.labels[i]),
        }
    return tensors


def snippet(
    runs: Runs, heads: Heads, comparison: MapComparison, view: str, renormalise: bool
) -> str:
    """Python code that subtracts the same heads and prints the largest difference."""
    names = ["difference", "merge_tokens", *["renormalize"] * renormalise, "visible_groups"]
    sides = [
        f"{run.model!a}, {run.tokens.text!a}, {choice.layer}, {choice.head}"
        for run, choice in zip(runs, heads, strict=True)
    ]
    code = SNIPPET.format(
        names=", ".join(names),
        aligned="aligned_words" if view == WORDS else "aligned",
        left=sides[0],
        right=sides[1],
        renormalise=RENORMALISE if renormalise else "",
    )
    table = comparison.table
    if table.empty:
        return code
    first = table.iloc[0]
    return code + LARGEST.format(
        cell=f"{first['query unit']}, {first['key unit']}",
        query=ascii(first["query"]),
        key=ascii(first["key"]),
    )
