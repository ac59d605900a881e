"""The inputs of each number of the eleven steps.

Steps 5, 6, 10 and the first half of 11 only move numbers, and `NamedTensor.cells` tracks their
positions. Every other number is computed, and an equation names the tensors it reads. Letters: b
sentence, t token, h key/value head, g query heads that share it, q query, k and l keys, c and d
columns, p and r halves of a head.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attention_core.analysis.provenance import Computation, Kind
from attention_core.positions.rotary import Rotation
from pages.learn.shapes.experiment.named_tensors import ShapeStep

ROTATION = "rotation"
PROJECTIONS = {"queries": "W_query", "keys": "W_key", "values": "W_value"}
KINDS: dict[str, Kind] = {"masked": "masked", "scaled": "scaled", "after dropout": "dropout"}


def sources(steps: Sequence[ShapeStep]) -> dict[str, Tensor]:
    """Every tensor by step and name ("7 scores"), plus the rotation matrix if there is one."""
    results = {f"{step.number} {each.name}": each.tensor for step in steps for each in step.tensors}
    rotation = steps[5].tensors[-1].rotation
    return results if rotation is None else {**results, ROTATION: rotation_matrix(rotation)}


def rotation_matrix(rotation: Rotation) -> Tensor:
    """Turn cosines and sines (T, D) into rotation matrices of pairs of halves (2, 2, T, D/2)."""
    cos, sin = (part.chunk(2, dim=-1)[0] for part in rotation)  # both halves have the same angles
    return torch.stack((torch.stack((cos, -sin)), torch.stack((sin, cos))))


def computations(steps: Sequence[ShapeStep]) -> dict[str, Computation]:
    """How each tensor was computed, by step and name, without inputs and moved tensors."""
    results = {}
    for name, matrix in PROJECTIONS.items():
        read, bias = ("1 input", f"3 {matrix}"), steps[3][name].bias
        results[f"4 {name}"] = Computation("product", "btc,cd->btd", read, bias=bias)
    if steps[5].tensors[-1].rotation is not None:
        for name in ("queries", "keys"):
            read = (f"6 {name}", ROTATION)
            results[f"6 {name}, rotated"] = Computation("rotated", "bht(pd),rptd->bht(rd)", read)
    queries, keys = (f"{number} {name}" for number, name in steps[6].sources)
    results["7 scores"] = Computation("product", "b(hg)qd,bhkd->b(hg)qk", (queries, keys))
    last = "7 scores"
    for each in steps[7].tensors:  # each reads the one before it
        if each.name == "weights":
            how = Computation("softmax", "bhqk,bhql->bhqk", (last, last))
        else:
            how = Computation(KINDS[each.name], "bhqk->bhqk", (last,), factor=each.factor)
        last = f"8 {each.name}"
        results[last] = how
    results["9 context"] = Computation("product", "b(hg)qk,bhkd->b(hg)qd", (last, "6 values"))
    read, bias = ("11 merged", "3 W_out"), steps[10]["output"].bias
    results["11 output"] = Computation("product", "btc,cd->btd", read, bias=bias)
    return results
