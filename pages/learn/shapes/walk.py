"""The eleven steps of multi-head attention as panels of a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pages.learn.shapes import statements
from ui.canvas.tensors import Panel, Provenance, Quantity
from ui.canvas.tensors.provenance import provenance

if TYPE_CHECKING:
    import torch

    from pages.learn.shapes.experiment.named_tensors import NamedTensor, ShapeStep

LAST = 11


@dataclass(frozen=True)
class ShapeWalk:
    """The eleven steps, and which part of them is drawn.

    labels: the tokens of each sentence. indices: what is drawn along the axes "token", "head",
    "key/value head", "column" (of a head) and "wide column" (of the input or output); None draws
    everything. shared: whether there are fewer key/value heads than query heads. layer: the index
    of the model's layer; None for the example.
    """

    steps: tuple[ShapeStep, ...]
    labels: tuple[tuple[str, ...], ...]
    indices: dict[str, list[int]] | None = None
    shared: bool = False
    layer: int | None = None
    rotary: bool = False

    def code(self, number: int) -> tuple[str, ...]:
        """Locate the statements of a step: arguments of `source.show_lines`."""
        if self.layer is None:
            return statements.example_statements(number)
        return statements.layer_statements(number, rotary=self.rotary)

    @property
    def palette(self) -> tuple[int, int]:
        """How many rows of identities the panels have, and how many numbers per row."""
        return len(self.labels) * len(self._tokens), len(self._columns)

    @property
    def _tokens(self) -> list[int]:
        everything = range(len(self.labels[0]))
        return list(everything) if self.indices is None else self.indices["token"]

    @property
    def _columns(self) -> list[int]:
        """The numbering's columns that are drawn."""
        width = self.steps[0].width
        if self.indices is None:
            return list(range(width))
        head_dim = self.steps[1].tensors[0].shape[1]
        n_heads = self.steps[1].tensors[0].shape[0]
        starts = [head * head_dim for head in self.indices["head"]]
        if self.shared:
            starts += [(n_heads + head) * head_dim for head in self.indices["key/value head"]]
        return [start + i for start in starts for i in self.indices["column"]] + [width - 1]

    def input_panels(self, number: int) -> list[Panel]:
        """The panels of the tensors that a step reads."""
        return [self.panel(at, name) for at, name in self.steps[number - 1].sources]

    def output_panels(self, number: int) -> list[Panel]:
        """The panels of the tensors that a step computes."""
        return [self.panel(number, tensor.name) for tensor in self.steps[number - 1].tensors]

    def path_panels(self) -> list[Panel]:
        """The panels of steps 4 to 11, one per step: queries, scores, weights, context, output."""
        ways = ((step.number, step.tensors[-1 if step.number == 8 else 0]) for step in self.steps)
        return [
            self.make_panel(tensor, f"{number} {tensor.name}", number)
            for number, tensor in ways
            if number >= 4
        ]

    def panel(self, number: int, name: str) -> Panel:
        """The panel of one tensor of a step."""
        return self.make_panel(self.steps[number - 1][name], f"step {number}: {name}", number)

    def make_panel(self, tensor: NamedTensor, title: str, number: int | None = None) -> Panel:
        """Make a panel of a tensor, cut to the part that is drawn.

        number: the tensor's step. With it, pointing at a cell frames what it was computed from.
        """
        indices = self.drawn_indices(tensor)
        window = np.ix_(*indices)
        names = {axis: self._words() for axis in ("token", "query", "key")}
        heads = tuple(f"head {head}" for head in indices[-2])

        def numbered(places: torch.Tensor | None) -> np.ndarray | None:
            return None if places is None else self._identities(array(places)[window])

        return Panel(
            title,
            array(tensor.tensor)[window],
            tensor.axes,
            rows=heads if tensor.axes[-2] == "head" else names.get(tensor.axes[-2]),
            columns=names.get(tensor.axes[-1]),
            blocks=names.get(tensor.axes[-3]) if len(tensor.axes) == 4 else None,
            cells=numbered(tensor.cells),
            groups=numbered(tensor.groups),
            strand="context" if tensor.name == "merged" else tensor.name,
            quantity=_quantity(tensor),
            identity="" if number is None else f"{number} {tensor.name}",
            provenance=None if number is None else self._provenance(number, tensor.name, indices),
            positions=None if self.indices is None else tuple(indices),
            whole=tensor.shape,
        )

    def _provenance(self, number: int, name: str, window: list[list[int]]) -> Provenance | None:
        """How the drawn numbers of a tensor were computed; None if they were only moved."""
        from pages.learn.shapes.experiment.provenance import computations, sources

        how = computations(self.steps).get(f"{number} {name}")
        return provenance(how, sources(self.steps), window)

    def _words(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(words[i] for i in self._tokens) for words in self.labels)

    def drawn_indices(self, tensor: NamedTensor) -> list[list[int]]:
        """The indices that are drawn along each axis of a tensor."""
        if self.indices is None:
            return [list(range(size)) for size in tensor.shape]
        of_keys = tensor.name.split(",")[0] in ("keys", "values", "W_key", "W_value")
        heads = self.indices["key/value head" if of_keys else "head"]
        head_dim = self.steps[1].tensors[0].shape[1]
        flat = [head * head_dim + i for head in heads for i in self.indices["column"]]
        wide = self.indices["wide column"]
        if tensor.name == "W_out":  # rows are columns of all heads, columns are those of the output
            return [flat, wide]
        columns = self.indices["column"]
        if len(tensor.axes) == 3:
            columns = wide if tensor.name in ("input", "output") else flat
        picks = {
            "batch": [0],
            "token": self._tokens,
            "query": self._tokens,
            "key": self._tokens,
            "head": heads,
            "column": columns,
            "input column": wide,
            "output column": flat,
        }
        return [picks[axis] for axis in tensor.axes]

    def _identities(self, places: np.ndarray) -> np.ndarray:
        """Convert positions in the steps' numbering to identities; -1 for what isn't drawn."""
        n_tokens = len(self.labels[0])
        row, column = np.divmod(places, self.steps[0].width)
        batch, token = np.divmod(row, n_tokens)
        new_token = _ranks(self._tokens, n_tokens)[token]
        new_column = _ranks(self._columns, self.steps[0].width)[column]
        width = len(self._columns)
        identities = (batch * len(self._tokens) + new_token) * width + new_column
        return np.where((new_token < 0) | (new_column < 0), -1, identities)

    def overview(self, current: int) -> str:
        """List all steps with their shapes, one shape per line, and mark the current step."""
        longest = max(len(step.title) for step in self.steps)
        lines = []
        for step in self.steps:
            beside = f"{'▶' if step.number == current else ' '} {step.number:2} {step.title}"
            for shape in step.shape_text.split(" and "):
                lines.append(f"{beside:{longest + 5}}  {shape}")
                beside = ""
        return "\n".join(lines)

    def window(self) -> str:
        """Describe which part of the tensors is drawn; empty if everything is."""
        if self.indices is None:
            return ""
        n_heads, head_dim = self.steps[1].tensors[0].shape
        _, n_tokens, width = self.steps[0].tensors[0].shape
        heads = f"heads {_range_text(self.indices['head'])} of {n_heads}"
        if self.shared:
            kv_heads = self.steps[5]["keys"].shape[1]
            heads += (
                f" (key/value heads {_range_text(self.indices['key/value head'])} of {kv_heads})"
            )
        return (
            f"Shown here, from layer {self.layer}: tokens {_range_text(self._tokens)} of "
            f"{n_tokens}; "
            f"{heads}; columns {_range_text(self.indices['column'])} of {head_dim} in each head; "
            f"columns {_range_text(self.indices['wide column'])} of {width} in the input and "
            "output. "
            "The rest is computed too, but not drawn."
        )

    def numbers(self, number: int) -> pd.DataFrame:
        """Make a table of a step's drawn numbers, one number per row."""
        tables = []
        for tensor in self.steps[number - 1].tensors:
            window = self.drawn_indices(tensor)
            grid = np.meshgrid(*window, indexing="ij")
            index = {axis: part.ravel() for axis, part in zip(tensor.axes, grid, strict=True)}
            values = array(tensor.tensor)[np.ix_(*window)].ravel()
            tables.append(pd.DataFrame({"tensor": tensor.name, **index, "value": values}))
        return pd.concat(tables, ignore_index=True)


def decimals(panels: Sequence[Panel]) -> int:
    """How many decimals to show: none if all numbers are whole."""
    return 2 if any((panel.values != np.round(panel.values)).any() for panel in panels) else 0


def array(tensor: torch.Tensor) -> np.ndarray:
    """Convert a tensor to NumPy: integers stay integers, the rest becomes float32."""
    whole = not tensor.dtype.is_floating_point
    plain: np.ndarray = (tensor if whole else tensor.detach().float()).cpu().numpy()
    return plain


def _quantity(tensor: NamedTensor) -> Quantity:
    """The kind of a tensor's numbers: queries, keys, values, scores, weights, or none of them."""
    kinds: dict[str, Quantity] = {"queries": "queries", "keys": "keys", "values": "values"}
    if tensor.axes[-1] != "key":
        return kinds.get(tensor.name.split(",")[0], "")
    return "weights" if tensor.name in ("weights", "after dropout") else "scores"


def _ranks(chosen: list[int], size: int) -> np.ndarray:
    """For each index below `size`, its position in `chosen`, or -1 if it isn't there."""
    ranks = np.full(size, -1)
    ranks[chosen] = np.arange(len(chosen))
    return ranks


def _range_text(indices: list[int]) -> str:
    """Format consecutive numbers as a range, such as "3 to 5"."""
    first, last = indices[0], indices[-1]
    return f"{first}" if first == last else f"{first} to {last}"
