"""Two heads of a layer on the visitor's text, compared to a head with a single map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pretrained import Tokens
from serving.cache import cached
from serving.heads import HeadId
from serving.runs import Run
from ui.text.formatting import percent
from ui.text.isolated import isolated

AVERAGE, BEST = "average of both heads", "best single map"
MAX_KEYS = 12  # bars per row of weights


@dataclass(frozen=True)
class TwoHeads:
    """Two heads on a text of T tokens; the arrays are float32.

    maps: their weights (2, T, T). average: mean of both (T, T). distances: half the sum of the
    differences of both rows (T), from 0 to 1. missed_shares: for AVERAGE and BEST, the length of
    the error divided by the length of both heads' output (T). whole: the same for all tokens
    together.
    """

    names: tuple[str, str]
    tokens: Tokens
    causal: bool
    maps: np.ndarray
    average: np.ndarray
    distances: np.ndarray
    missed_shares: dict[str, np.ndarray]
    whole: dict[str, float]

    def missed_by(self, token: int) -> pd.DataFrame:
        """The error of a single head at a token and in the whole text, with each map."""
        return pd.DataFrame(
            {
                "map of the single head": list(self.missed_shares),
                "error at this token": [
                    f"{shares[token]:.0%}" for shares in self.missed_shares.values()
                ],
                "error in the text": [f"{share:.0%}" for share in self.whole.values()],
            }
        )

    @property
    def table(self) -> pd.DataFrame:
        """One row per token."""
        return pd.DataFrame(
            {
                "position": range(len(self.tokens)),
                "token": self.tokens.labels,
                "distance of both rows": self.distances,
                **{f"error of {name}": shares for name, shares in self.missed_shares.items()},
            }
        )


@cached(key=lambda run, layer, heads: (*run.key, layer, heads))
def two_heads(run: Run, layer: int, heads: tuple[int, int]) -> TwoHeads:
    """Compute the output of two heads, and the error of a single head that replaces them."""
    import torch

    from pages.learn.why_several_heads.experiment import one_map

    tensors = run.tensors
    weights = tensors.weights[layer, list(heads)]
    out_weight = run.pretrained.core.out_weight(layer).detach().float().cpu()
    visible = torch.ones(weights.shape[-2:], dtype=torch.bool)
    with torch.inference_mode():
        values = one_map.written_vectors(tensors.v[layer], out_weight, heads)
        both = one_map.attend_with_maps(weights, values)
        average = one_map.average_map(weights)
        best = one_map.best_map(values, both, visible.tril() if run.causal else visible)
        handed_on = {
            name: one_map.attend_with_one_map(single, values)
            for name, single in ((AVERAGE, average), (BEST, best.float()))
        }
        return TwoHeads(
            names=(str(HeadId(layer, heads[0])), str(HeadId(layer, heads[1]))),
            tokens=run.tokens,
            causal=run.causal,
            maps=weights.numpy(),
            average=average.numpy(),
            distances=((weights[0] - weights[1]).abs().sum(dim=-1) / 2).numpy(),
            missed_shares={
                name: one_map.missed_share(both, output).numpy()
                for name, output in handed_on.items()
            },
            whole={
                name: float(one_map.missed_share(both.flatten(), output.flatten()))
                for name, output in handed_on.items()
            },
        )


def top_keys(heads: TwoHeads, token: int) -> tuple[int, int]:
    """The other token that gets the most attention from this one, for each head.

    A decoder's first token and special tokens are left out if there are others, because heads park
    unneeded attention there (Xiao et al. 2023, https://arxiv.org/abs/2309.17453).
    """
    places = np.arange(len(heads.tokens))
    resting = np.array(heads.tokens.special)
    resting[0] |= heads.causal
    visible = places <= token if heads.causal else places >= 0
    others = visible & ~resting & (places != token)
    allowed = others if others.any() else visible
    first, second = np.where(allowed, heads.maps[:, token], -1.0).argmax(axis=-1).tolist()
    return first, second


def attention_sentence(heads: TwoHeads, token: int) -> str:
    """Name the word that this token attends to most in each head, and its average weight."""
    labels = [isolated(label) for label in heads.tokens.labels]
    first, second = top_keys(heads, token)
    weights = heads.maps[0, token, first], heads.maps[1, token, second]
    average = heads.average[token, [first, second]]
    a, b = heads.names
    if first == second == token:
        return (
            f"“{labels[token]}” doesn't see any other words. It gives itself "
            f"{percent(weights[0])} in {a} and {percent(weights[1])} in {b}."
        )
    begin = f"Among the other words, “{labels[token]}” attends most to “{labels[first]}” in "
    if first == second:
        return (
            f"{begin}both heads: {percent(weights[0])} in {a} and {percent(weights[1])} in {b}. "
            f"In the average of both heads, it gets {percent(average[0])}."
        )
    return (
        f"{begin}{a} ({percent(weights[0])}) and to “{labels[second]}” in {b} "
        f"({percent(weights[1])}). In the average of both heads, they get {percent(average[0])} "
        f"and {percent(average[1])}."
    )


def token_rows(heads: TwoHeads, token: int) -> pd.DataFrame:
    """The rows of a token in both maps and in the average: `place`, `token`, `map`, `weight`.

    For long texts, only the `MAX_KEYS` keys with the largest weights, in text order. `place`
    numbers them, because words can repeat.
    """
    rows = dict(zip(heads.names, heads.maps[:, token], strict=True))
    rows[AVERAGE] = heads.average[token]
    n_seen = token + 1 if heads.causal else len(heads.tokens)
    largest = heads.maps[:, token, :n_seen].max(axis=0)
    keys = np.sort(np.argsort(-largest, kind="stable")[:MAX_KEYS])
    return pd.DataFrame(
        [
            {
                "place": place,
                "token": heads.tokens.labels[key],
                "map": name,
                "weight": float(row[key]),
            }
            for name, row in rows.items()
            for place, key in enumerate(keys)
        ]
    )
