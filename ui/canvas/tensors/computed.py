"""How a panel's numbers were computed, in the form that the picture needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ui.canvas.tensors import Made

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.analysis.computed_from import Computation

TERMS_WRITTEN = 6  # of a sum of products; the picture says how many more there are


def made(
    how: Computation | None, sources: Mapping[str, Tensor], picked: Sequence[Sequence[int]]
) -> Made | None:
    """How the numbers in a window of a tensor were computed; None if they weren't computed.

    sources: the inputs, by the `identity` of their panels. picked: the indices of the window along
    each axis.
    """
    from attention_core.analysis.computed_from import terms

    if how is None:
        return None
    found = terms(how, sources, picked, TERMS_WRITTEN)
    operands, added = found.operands.float().numpy(), None
    if found.added is not None:
        added = found.added.float().numpy()
    return Made(how.kind, how.equation, how.sources, found.sizes, operands, found.n_terms, added)
