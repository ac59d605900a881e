"""The steps of a token through the model, and the learned parameters that each one uses.

Training changes these parameters and nothing else. Everything else is computed from the text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from serving import models
from serving.cache import cached
from serving.heads import HeadId
from serving.one_pass import HeadDetail, LayerDetail, OnePass

NOTHING = "none: computed from the text"


@dataclass(frozen=True)
class ParameterCounts:
    """The learned parameters of a model by part, summed over all layers."""

    parts: dict[str, int]

    @property
    def total(self) -> int:
        """The total number of parameters."""
        return sum(self.parts.values())

    def count(self, *names: str) -> int:
        """The parameters of all parts whose names start with one of these."""
        return sum(count for part, count in self.parts.items() if part.startswith(names))


@cached(key=lambda name: models.key(name))
def count_parameters(name: str) -> ParameterCounts:
    """Parameter counts of a loaded model. Raises the same errors as loading it."""
    from attention_core.costs.parameters import parameters_by_part

    return ParameterCounts(parameters_by_part(models.get(name).core))


def stops_table(
    one_pass: OnePass, layer: LayerDetail, head: HeadDetail, token: int, numbers: ParameterCounts
) -> pd.DataFrame:
    """One row per step: the token's vector, its shape and length, and the learned parameters.

    Lengths are from the open layer and head; parameter counts are for all layers.
    """
    width, size = one_pass.run.tensors.states.shape[-1], head.q.shape[1]
    n_seen = int(np.isfinite(head.scaled[token]).sum())
    vector, small = f"({width:,},)", f"({size},)"
    name, at = str(HeadId(layer.layer, head.head)), f"layer {layer.layer}"
    norms = {part: float(of_tokens[token]) for part, of_tokens in layer.norms.items()}

    def length(vectors: np.ndarray) -> float:
        return float(np.linalg.norm(vectors[token]))

    first, last = float(one_pass.state_norms[0, token]), float(one_pass.state_norms[-1, token])
    rows: list[tuple[str, str, float | None, str, int]] = [
        (
            "a row of the token embedding",
            vector,
            None,
            "token embedding",
            numbers.count("embedding"),
        ),
    ]
    if added := numbers.count("positions", "segments"):
        rows.append(("its position is added", vector, None, "position embeddings", added))
    attention = ("attention: queries", "attention: keys", "attention: values", "attention: latent")
    rows += [
        ("enters layer 0", vector, first, NOTHING, 0),
        (f"enters {at}", vector, norms["input"], NOTHING, 0),
        (f"query of {name}", small, length(head.q), "W_q, W_k, W_v", numbers.count(*attention)),
        (f"key of {name}", small, length(head.k), "(counted above)", 0),
        (f"value of {name}", small, length(head.v), "(counted above)", 0),
        ("scores with all visible tokens", f"({n_seen},)", None, NOTHING, 0),
        ("weights: the softmax of the scores", f"({n_seen},)", None, NOTHING, 0),
        ("weighted sum of the values", small, length(head.context), NOTHING, 0),
        (
            "all heads together add",
            vector,
            norms["attention"],
            "W_O",
            numbers.count("attention: out"),
        ),
        (
            "normalized, for the feed-forward network",
            vector,
            norms["mlp_reads"],
            "all norms",
            numbers.count("norms"),
        ),
        (
            "the feed-forward network adds",
            vector,
            norms["mlp_output"],
            "feed-forward matrices",
            numbers.count("feed-forward"),
        ),
        (f"leaves {at}", vector, norms["output"], NOTHING, 0),
        ("leaves the last layer", vector, last, NOTHING, 0),
    ]
    if one_pass.next_token is not None:
        matrix = numbers.count("output matrix")
        tied = "the token embedding again" if not matrix else "output matrix"
        rows.append(("is compared with every token", "(vocabulary,)", None, tied, matrix))
    names = ("step", "shape", "length", "learned part", "parameters, all layers")
    return pd.DataFrame(
        [
            (stop, shape, "" if norm is None else f"{norm:.4g}", what, f"{n:,}" if n else "")
            for stop, shape, norm, what, n in rows
        ],
        columns=names,
    )
