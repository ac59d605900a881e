"""What each number of the eleven steps was computed from.

Steps 5, 6, 10 and the first half of 11 only move numbers, and a cell's place follows them
(`Named.cells`). Every other number is new, and an equation says which tensors it reads. Letters:
b sentence, t token, h key/value head, g query heads that share it, q query, k key, c and d columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attention_core.analysis.computed_from import Computation, Kind
from attention_core.positions.rotary import Rotation
from pages.learn.shapes.experiment.named import ShapeStep

ROTATION = "rotation"
PROJECTIONS = {"queries": "W_query", "keys": "W_key", "values": "W_value"}
KINDS: dict[str, Kind] = {"masked": "masked", "scaled": "scaled", "after dropout": "dropout"}


def sources(steps: Sequence[ShapeStep]) -> dict[str, Tensor]:
    """Every tensor of the steps by its step and name ("7 scores"), and the matrix of a rotation."""
    found = {
        f"{step.number} {named.name}": named.tensor for step in steps for named in step.tensors
    }
    rotation = steps[5].tensors[-1].rotation
    return found if rotation is None else {**found, ROTATION: rotation_matrix(rotation)}


def rotation_matrix(rotation: Rotation) -> Tensor:
    """What a pair of halves is multiplied by: cosines and sines (T, D) -> (2, 2, T, D/2)."""
    cos, sin = (part[:, : part.shape[-1] // 2] for part in rotation)  # both halves turn alike
    return torch.stack((torch.stack((cos, -sin)), torch.stack((sin, cos))))


def computations(steps: Sequence[ShapeStep]) -> dict[str, Computation]:
    """How the tensors were computed, by step and name; those given or only moved are left out."""
    found = {
        f"4 {name}": Computation(
            "product", "btc,cd->btd", ("1 input", f"3 {matrix}"), bias=steps[3][name].bias
        )
        for name, matrix in PROJECTIONS.items()
    }
    for turned in steps[5].tensors:
        if turned.rotation is not None:
            source = f"6 {turned.name.split(',')[0]}"
            found[f"6 {turned.name}"] = Computation(
                "rotated", "bht(pd),rptd->bht(rd)", (source, ROTATION)
            )
    queries, keys = (f"{number} {name}" for number, name in steps[6].made_from)
    found["7 scores"] = Computation("product", "b(hg)qd,bhkd->b(hg)qk", (queries, keys))
    before = "7 scores"
    for named in steps[7].tensors:
        if named.name == "weights":
            how = Computation("softmax", "bhqk,bhql->bhqk", (before, before))
        else:
            kind = KINDS[named.name]
            how = Computation(kind, "bhqk->bhqk", (before,), factor=named.factor)
        before = f"8 {named.name}"
        found[before] = how
    found["9 context"] = Computation("product", "b(hg)qk,bhkd->b(hg)qd", (before, "6 values"))
    found["11 output"] = Computation(
        "product", "btc,cd->btd", ("11 merged", "3 W_out"), bias=steps[10]["output"].bias
    )
    return found
