"""The inputs of each number of a rung; tensor names are those of `tensors`."""

from __future__ import annotations

import torch
from torch import Tensor

from attention_core.analysis.provenance import Computation, Kind
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
# Tokens t with columns c, times a matrix, which nn.Linear stores transposed (from v2 on).
PROJECTIONS = {
    **dict.fromkeys(RUNGS, "tc,dc->td"),
    V1: "tc,cd->td",
    WRAPPER: "tc,hdc->htd",  # every head has its own matrix
    SPLITS: "tc,(hd)c->htd",  # the heads' rows are stacked
}


def matrices(rung: Rung) -> dict[str, Tensor]:
    """The rung's parameters; the wrapper's heads are stacked as (H, D, d_in)."""
    if rung.name != WRAPPER:
        return rung.matrices
    heads = range(rung.n_heads)
    return {
        name: torch.stack([rung.matrices[f"heads.{head}.{name}"] for head in heads])
        for name in MATRICES.values()
    }


def tensors(rung: Rung) -> dict[str, Tensor]:
    """Every tensor of a rung by name, in order of computation.

    Without a mask or scale, the corresponding tensor is left out. `attention`, the weights before
    dropout, is included only on the dropout rung.
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
    """How the tensors of a rung were computed, except inputs and rearrangements.

    dropout: the probability of dropping a weight.
    """
    h = "h" if rung.record.q.dim() == 3 else ""
    shown = tensors(rung)
    results = {"scores": Computation("product", f"{h}qd,{h}kd->{h}qk", ("q", "k"))}
    if rung.name != SIMPLIFIED:
        equation, sizes = PROJECTIONS[rung.name], {"h": rung.n_heads}
        for name, matrix in MATRICES.items():
            results[name] = Computation("product", equation, ("x", matrix), sizes)

    def changed(kind: Kind, source: str, factor: float = 1.0) -> Computation:
        return Computation(kind, f"{h}qk->{h}qk", (source,), factor=factor)

    last = "scores"
    if "masked" in shown:
        results["masked"], last = changed("masked", last), "masked"
    if "scaled" in shown:
        results["scaled"], last = changed("scaled", last, rung.record.scale), "scaled"
    softmax = Computation("softmax", f"{h}qk,{h}ql->{h}qk", (last, last))
    if "attention" in shown:
        results["attention"] = softmax
        results["weights"] = changed("dropout", "attention", 1.0 / (1.0 - dropout))
    else:
        results["weights"] = softmax
    results["context"] = Computation("product", f"{h}qk,{h}kd->{h}qd", ("weights", "v"))
    if rung.name == SPLITS:  # concatenated contexts of all heads, times a row of out_proj
        bias = rung.matrices["out_proj.bias"]
        sources = "context", "out_proj.weight"
        results["output"] = Computation("product", "htd,c(hd)->tc", sources, bias=bias)
    return results


def identities(rung: Rung) -> dict[str, Tensor]:
    """Identities of numbers that appear in several tensors, by tensor.

    On the first rung every token is its own query, key and value. The wrapper places the contexts
    of its heads side by side.
    """
    if rung.name == SIMPLIFIED:
        cells = torch.arange(rung.x.numel()).view(rung.x.shape)
        return dict.fromkeys(("x", "q", "k", "v"), cells)
    if rung.name == WRAPPER:
        cells = torch.arange(rung.output.numel()).view(rung.output.shape)
        by_token = cells.unflatten(-1, (rung.n_heads, -1))
        return {"context": by_token.transpose(0, 1), "output": cells}
    return {}
