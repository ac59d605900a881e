"""The name of a head: L3H1 is head 1 of layer 3, both counted from 0."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class HeadId:
    """A head of a model. As text it is written as in the literature: "L3H1"."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}"

    @classmethod
    def parse(cls, name: str) -> HeadId:
        """The head that a name such as "L3H1" stands for.

        Raises: ValueError for any other text.
        """
        match = re.fullmatch(r"L([0-9]{1,4})H([0-9]{1,4})", name)
        if match is None:
            raise ValueError(f"{name!r} is no head; write one as L3H1.")
        return cls(int(match[1]), int(match[2]))


def all_heads(n_layers: int, n_heads: int) -> list[str]:
    """The names of all heads, layer by layer."""
    return [str(HeadId(layer, head)) for layer in range(n_layers) for head in range(n_heads)]
