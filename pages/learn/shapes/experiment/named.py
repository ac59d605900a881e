"""A tensor of a step with the names of its axes, and where each of its numbers came from.

Dimension letters: B batch, T tokens, D head size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from attention_core.positions.rotary import Rotation

FLAT = ("batch", "token", "column")
BY_TOKEN = ("batch", "token", "head", "column")
BY_HEAD = ("batch", "head", "token", "column")
PAIRS = ("batch", "head", "query", "key")
MATRIX = ("input column", "output column")


@dataclass(frozen=True)
class Named:
    """One tensor of a step.

    axes: the name of each dimension. cells: for each number, its place in the (B, T, width)
    numbering of the step, where it is still one of the numbers of step 4, moved: `row * width +
    column` with `row = b * T + t`. groups: the place of the first number of the token and head to
    which it belongs; column `width - 1` stands for the token as a whole.
    bias: what was added to the sum of products, a number for each index of the last axis. factor:
    what every number was multiplied by. rotation: the cosines and sines (T, D) that turned it.
    """

    name: str
    tensor: Tensor
    axes: tuple[str, ...]
    cells: Tensor | None = None
    groups: Tensor | None = None
    bias: Tensor | None = None
    factor: float = 1.0
    rotation: Rotation | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape."""
        return tuple(self.tensor.shape)

    def moved(self, source: Named, move: Callable[[Tensor], Tensor]) -> Named:
        """What this would be if `move` had moved `source`: its numbers and their places alike."""
        cells = None if source.cells is None else move(source.cells)
        groups = None if source.groups is None else move(source.groups)
        return replace(self, tensor=move(source.tensor), cells=cells, groups=groups)


@dataclass(frozen=True)
class ShapeStep:
    """One of the eleven steps.

    tensors: what it made, in this order. made_from: number and name of each tensor that it read.
    width: the row width of the numbering in `cells` and `groups`.
    """

    number: int
    title: str
    tensors: tuple[Named, ...]
    width: int
    made_from: tuple[tuple[int, str], ...] = ()

    @property
    def shape_text(self) -> str:
        """The shape of what the step made; for the choice of sizes, the sizes."""
        first = self.tensors[-1]
        if self.number == 2:
            n_heads, head_dim = first.shape
            return f"{n_heads * head_dim}, {n_heads}, {head_dim}"
        shapes = list(dict.fromkeys(str(tensor.shape) for tensor in self.tensors))
        if self.number == 3 and len(shapes) == 1:
            return f"{shapes[0]} each"
        return " and ".join(shapes)

    def __getitem__(self, name: str) -> Named:
        """The tensor of this name; KeyError if the step has no tensor of it."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(name)
