"""What each number of a rung was computed from; tensors bear the names of `tensors`."""

from __future__ import annotations

import torch
from torch import Tensor

from attention_core.analysis.computed_from import Computation, Kind
from pages.learn.ladder.experiment.ladder import (
    DROPOUT,
    RUNGS,
    SIMPLIFIED,
    SPLITS,
    V1,
    WRAPPER,
    Rung,
)

MATRICES = {"q": "W_query", "k": "W_key", "v": "W_value"}
# Token t with the columns c, times a matrix; nn.Linear stores it transposed, from v2 on.
PROJECTIONS = {
    **dict.fromkeys(RUNGS, "tc,dc->td"),
    V1: "tc,cd->td",
    WRAPPER: "tc,hdc->htd",  # every head has a matrix of its own
    SPLITS: "tc,(hd)c->htd",  # the heads' rows lie below each other
}


def matrices(rung: Rung) -> dict[str, Tensor]:
    """The rung's parameters; those of the wrapper's heads stacked, (H, D, d_in) each."""
    if rung.name != WRAPPER:
        return rung.matrices
    heads = range(rung.n_heads)
    return {
        name: torch.stack([rung.matrices[f"heads.{head}.{name}"] for head in heads])
        for name in MATRICES.values()
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
    h = "h" if rung.record.q.dim() == 3 else ""
    shown = tensors(rung)
    found = {"scores": Computation("product", f"{h}qd,{h}kd->{h}qk", ("q", "k"))}
    if rung.name != SIMPLIFIED:
        equation, sizes = PROJECTIONS[rung.name], {"h": rung.n_heads}
        for name, matrix in MATRICES.items():
            found[name] = Computation("product", equation, ("x", matrix), sizes)

    def changed(kind: Kind, source: str, factor: float = 1.0) -> Computation:
        return Computation(kind, f"{h}qk->{h}qk", (source,), factor=factor)

    last = "scores"
    if "masked" in shown:
        found["masked"], last = changed("masked", last), "masked"
    if "scaled" in shown:
        found["scaled"], last = changed("scaled", last, rung.record.scale), "scaled"
    softmax = Computation("softmax", f"{h}qk,{h}ql->{h}qk", (last, last))
    if "attention" in shown:
        found["attention"] = softmax
        found["weights"] = changed("dropout", "attention", 1.0 / (1.0 - dropout))
    else:
        found["weights"] = softmax
    found["context"] = Computation("product", f"{h}qk,{h}kd->{h}qd", ("weights", "v"))
    if rung.name == SPLITS:  # the contexts of all heads side by side, times a row of out_proj
        bias = rung.matrices["out_proj.bias"]
        sources = "context", "out_proj.weight"
        found["output"] = Computation("product", "htd,c(hd)->tc", sources, bias=bias)
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
