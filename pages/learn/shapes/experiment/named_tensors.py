"""A step's tensor with the names of its axes and the origin of each of its numbers.

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
class NamedTensor:
    """One tensor of a step.

    axes: the name of each dimension. cells: for each number that has only been moved since step 4,
    its position in the step's (B, T, width) numbering: `row * width + column` with `row = b * T +
    t`.
    groups: the position of the first number of the token and head it belongs to; column
    `width - 1` means the whole token.
    bias: what was added to the sum of products, one number per index of the last axis. factor:
    what every number was multiplied by. rotation: cosines and sines (T, D) of the rotation.
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

    def apply_move(self, source: NamedTensor, move: Callable[[Tensor], Tensor]) -> NamedTensor:
        """Apply `move` to the numbers of `source` and to their positions."""
        cells = None if source.cells is None else move(source.cells)
        groups = None if source.groups is None else move(source.groups)
        return replace(self, tensor=move(source.tensor), cells=cells, groups=groups)


@dataclass(frozen=True)
class ShapeStep:
    """One of the eleven steps.

    tensors: its results, in this order. sources: step and name of each tensor that it reads.
    width: the row width of the numbering in `cells` and `groups`.
    """

    number: int
    title: str
    tensors: tuple[NamedTensor, ...]
    width: int
    sources: tuple[tuple[int, str], ...] = ()

    @property
    def shape_text(self) -> str:
        """The shape of the step's results; for step 2, the chosen sizes."""
        first = self.tensors[-1]
        if self.number == 2:
            n_heads, head_dim = first.shape
            return f"{n_heads * head_dim}, {n_heads}, {head_dim}"
        shapes = list(dict.fromkeys(str(tensor.shape) for tensor in self.tensors))
        if self.number == 3 and len(shapes) == 1:
            return f"{shapes[0]} each"
        return " and ".join(shapes)

    def __getitem__(self, name: str) -> NamedTensor:
        """Return the tensor of this name; KeyError if the step doesn't have it."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(name)
