"""What each number of the eleven steps was computed from.

Steps 5, 6, 10 and the first half of 11 only move numbers, and a cell's place follows them
(`Named.cells`). Every other number is new, and this module names the tensors that it is made of.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from attention_core.analysis.computed_from import (
    Computation,
    Follows,
    Kind,
    Reads,
    changed,
    mixed,
    projected,
    same,
    scored,
    weighed,
)
from pages.learn.shapes.experiment.named import ShapeStep

BY_HEAD = 2  # axes before queries and keys, or tokens and columns: sentence and head


def called(number: int, name: str) -> str:
    """What a computation calls a tensor of a step: "7 scores"."""
    return f"{number} {name}"


def sources(steps: Sequence[ShapeStep]) -> dict[str, Tensor]:
    """Every tensor of the steps by what a computation calls it."""
    return {
        called(step.number, named.name): named.tensor for step in steps for named in step.tensors
    }


def computation(steps: Sequence[ShapeStep], number: int, name: str) -> Computation | None:
    """How a tensor of a step was computed; None where it was given or only moved.

    Raises: KeyError if the step has no tensor of this name.
    """
    result = steps[number - 1][name]
    if number == 4:
        matrix = steps[2].tensors[[tensor.name for tensor in steps[3].tensors].index(name)]
        return projected("1 input", called(3, matrix.name), 1, result.bias)
    if result.rotation is not None:
        pair = (*same(3), Follows(3, half=result.shape[-1] // 2))
        reads = Reads(called(6, name.split(",")[0]), pair)
        return Computation("rotated", (reads,), rotation=result.rotation)
    if number == 7:
        queries, keys = (called(*source) for source in steps[6].made_from)
        return scored(queries, keys, BY_HEAD, _group(result.shape, steps))
    if number == 8:
        return _weighing(steps, name)
    if number == 9:
        weights = called(8, steps[7].tensors[-1].name)
        return mixed(weights, "6 values", BY_HEAD, _group(result.shape, steps))
    if name == "output":
        return projected("11 merged", "3 W_out", 1, result.bias)
    return None


def _group(shape: Sequence[int], steps: Sequence[ShapeStep]) -> int:
    """How many query heads share a key/value head."""
    return shape[1] // steps[5]["keys"].shape[1]


def _weighing(steps: Sequence[ShapeStep], name: str) -> Computation:
    """Step 8: every tensor comes from the one before it, the first from the scores."""
    names = [tensor.name for tensor in steps[7].tensors]
    at = names.index(name)
    before = called(8, names[at - 1]) if at else "7 scores"
    if name == "weights":
        return weighed(before, BY_HEAD)
    kinds: dict[str, Kind] = {"masked": "masked", "scaled": "scaled"}
    kind = kinds.get(name, "dropout")
    return changed(kind, before, BY_HEAD + 2, steps[7][name].factor)
