"""The page "Side by side" to take away: the arrays behind both maps, charts, its code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pages.compare.side_by_side import charts
from pages.compare.side_by_side.comparison import WORDS, MapComparison
from pages.compare.side_by_side.reference import Reference
from serving.runs import Run
from ui.export import take_away
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
units = {aligned}(a, b).units  # of tokens that hold the same characters
in_a, in_b = [unit.a for unit in units], [unit.b for unit in units]
seen = visible_groups(in_a, in_a, causal=left_causal)
seen &= visible_groups(in_b, in_b, causal=right_causal)
left, right = merge_tokens(left, in_a, in_a), merge_tokens(right, in_b, in_b)
{renormalise}signed = difference(left, right, seen)
print(signed)
"""
RENORMALISE = "left, right = renormalised(left, seen), renormalised(right, seen)\n"
LARGEST = "print(left[{cell}], right[{cell}], signed[{cell}])  # the largest: {query} -> {key}\n"


def show(
    runs: Runs,
    heads: Heads,
    comparison: MapComparison,
    view: str,
    renormalise: bool,
    references: Sequence[Reference],
) -> None:
    """Buttons, the code and the link."""
    files = [
        take_away.arrays(
            "Both heads and their difference (NPZ)",
            partial(arrays, runs, heads, comparison),
            "side_by_side.npz",
        )
    ]
    if references:
        files.append(take_away.pictures(partial(drawn, references), "side_by_side_charts.zip"))
    take_away.panel(
        files,
        snippet(runs, heads, comparison, view, renormalise),
        prefix="side_by_side",
        note="The NPZ holds the weights of both heads over tokens, both maps as drawn, and what "
        "was subtracted over shared units, float32; NaN where nothing can be compared. Each map "
        "has its own PNG and SVG buttons, each table its CSV above.",
    )


def drawn(references: Sequence[Reference]) -> take_away.Charts:
    """The charts of our core beside transformers."""
    return {
        f"core_beside_transformers_{place}": partial(
            charts.differences, charts.long_table(reference.table), reference.differences.largest
        )
        for place, reference in enumerate(references, start=1)
    }


def arrays(runs: Runs, heads: Heads, comparison: MapComparison) -> dict[str, Any]:
    """The tensors of both sides, and `left`, `right`, `difference` of the comparison."""
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
    """Python that subtracts the same heads and prints the largest difference."""
    names = ["difference", "merge_tokens", *["renormalised"] * renormalise, "visible_groups"]
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
