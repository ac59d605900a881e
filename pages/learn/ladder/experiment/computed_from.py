"""What each number of a rung was computed from; tensors bear the names of `tensors`."""

from __future__ import annotations

import torch
from torch import Tensor

from attention_core.analysis.computed_from import (
    Computation,
    Follows,
    Reads,
    changed,
    mixed,
    projected,
    scored,
    weighed,
)
from pages.learn.ladder.experiment.ladder import (
    DROPOUT,
    SIMPLIFIED,
    SPLITS,
    V1,
    WRAPPER,
    Rung,
)

PROJECTIONS = {"q": "W_query", "k": "W_key", "v": "W_value"}


def matrices(rung: Rung) -> dict[str, Tensor]:
    """The rung's parameters; those of the wrapper's heads stacked, (H, D, d_in) each."""
    if rung.name != WRAPPER:
        return rung.matrices
    heads = range(rung.n_heads)
    return {
        name: torch.stack([rung.matrices[f"heads.{head}.{name}"] for head in heads])
        for name in PROJECTIONS.values()
    }


def tensors(rung: Rung) -> dict[str, Tensor]:
    """Every tensor of a rung by name, in the order in which they are made.

    Where there is no mask or no scale the tensor after it is left out; `attention`, the weights
    before some are dropped, is there on the rung with dropout only.
    """
    record = rung.record
    made = {"x": rung.x, **matrices(rung), "q": record.q, "k": record.k, "v": record.v}
    made["scores"] = record.scores
    if bool((record.masked_scores != record.scores).any()):
        made["masked"] = record.masked_scores
    if record.scale != 1.0:
        made["scaled"] = record.scaled_scores
    if rung.name == DROPOUT:
        made["attention"] = record.attention
    made |= {"weights": record.weights, "context": record.context}
    if rung.name in (WRAPPER, SPLITS):
        made["output"] = rung.output
    return made


def computations(rung: Rung, dropout: float = 0.0) -> dict[str, Computation]:
    """How the tensors of a rung were computed; those that were given or only moved are left out.

    dropout: the probability with which weights were dropped.
    """
    n_lead = rung.record.q.dim() - 2
    names = tensors(rung)
    before = "scores"
    found = {before: scored("q", "k", n_lead)}
    if "masked" in names:
        found["masked"], before = changed("masked", before, n_lead + 2), "masked"
    if "scaled" in names:
        found["scaled"] = changed("scaled", before, n_lead + 2, rung.record.scale)
        before = "scaled"
    if "attention" in names:
        found["attention"] = weighed(before, n_lead)
        found["weights"] = changed("dropout", "attention", n_lead + 2, 1.0 / (1.0 - dropout))
    else:
        found["weights"] = weighed(before, n_lead)
    found["context"] = mixed("weights", "v", n_lead)
    if rung.name != SIMPLIFIED:
        found |= {name: _projected(rung, matrix) for name, matrix in PROJECTIONS.items()}
    if rung.name == SPLITS:
        found["output"] = _out_projected(rung)
    return found


def moved(rung: Rung) -> dict[str, Tensor]:
    """An identity for each number of the tensors that hold the same numbers, each its shape.

    On the first rung every token is its own query, key and value; the wrapper lays the contexts of
    its heads side by side.
    """
    if rung.name == SIMPLIFIED:
        cells = torch.arange(rung.x.numel()).view(rung.x.shape)
        return dict.fromkeys(("x", "q", "k", "v"), cells)
    if rung.name == WRAPPER:
        cells = torch.arange(rung.output.numel()).view(rung.output.shape)
        by_token = cells.unflatten(-1, (rung.n_heads, -1))
        return {"context": by_token.transpose(0, 1), "output": cells}
    return {}


def _projected(rung: Rung, matrix: str) -> Computation:
    """A row of x times a column of a matrix, which `nn.Linear` keeps as a row."""
    if rung.name == V1:
        return projected("x", matrix, 0)
    axes: tuple[Follows | None, ...]
    if rung.name == WRAPPER:  # every head has a matrix of its own
        token, axes = Follows(1), (Follows(0), Follows(2), None)
    elif rung.name == SPLITS:  # the heads' rows lie below each other
        head_dim = rung.record.q.shape[-1]
        token, axes = Follows(1), (Follows(2, head=(0, head_dim)), None)
    else:
        token, axes = Follows(0), (Follows(1), None)
    return Computation("product", (Reads("x", (token, None)), Reads(matrix, axes)))


def _out_projected(rung: Rung) -> Computation:
    """The context of all heads, side by side, times a row of out_proj."""
    reads = (
        Reads("context", (None, Follows(0), None)),
        Reads("out_proj.weight", (Follows(1), None)),
    )
    return Computation("product", reads, rung.matrices["out_proj.bias"])
