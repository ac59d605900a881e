"""How a panel's numbers were computed, in the form that the picture needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ui.canvas.tensors import Provenance

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.analysis.provenance import Computation

TERMS_WRITTEN = 6  # of a sum of products; the picture says how many more there are


def provenance(
    computation: Computation | None, sources: Mapping[str, Tensor], indices: Sequence[Sequence[int]]
) -> Provenance | None:
    """How the numbers in a window of a tensor were computed; None if they weren't computed.

    sources: the inputs, by the `identity` of their panels. indices: the indices of the window along
    each axis.
    """
    from attention_core.analysis.provenance import terms

    if computation is None:
        return None
    result = terms(computation, sources, indices, TERMS_WRITTEN)
    operands, added = result.operands.float().numpy(), None
    if result.added is not None:
        added = result.added.float().numpy()
    return Provenance(
        computation.kind,
        computation.equation,
        computation.sources,
        result.sizes,
        operands,
        result.n_terms,
        added,
    )
