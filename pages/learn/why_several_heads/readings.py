"""Two heads of a layer on a visitor's text, beside one head that has a single map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pretrained import Tokens
from serving.cache import cached
from serving.heads import HeadId
from serving.runs import Run
from ui.text.isolated import isolated
from ui.text.number_text import percent

AVERAGE, BEST = "the average map", "the best single map"
MOST_KEYS = 12  # bars of one row of weights


@dataclass(frozen=True)
class TwoHeads:
    """Two heads on a text of T tokens; the arrays are float32.

    maps: their weights (2, T, T). average: of both (T, T). distances: half the sum of the
    differences of both rows (T), from 0 to 1. missed: of AVERAGE and of BEST, the length of what is
    missed over the length of what both heads hand on (T). whole: the same of all tokens together.
    """

    names: tuple[str, str]
    tokens: Tokens
    causal: bool
    maps: np.ndarray
    average: np.ndarray
    distances: np.ndarray
    missed: dict[str, np.ndarray]
    whole: dict[str, float]

    def missed_by(self, token: int) -> pd.DataFrame:
        """What one head misses at a token and in the whole text, with each of its two maps."""
        return pd.DataFrame(
            {
                "one head has": list(self.missed),
                "misses at this token": [f"{shares[token]:.0%}" for shares in self.missed.values()],
                "misses in the text": [f"{share:.0%}" for share in self.whole.values()],
            }
        )

    @property
    def table(self) -> pd.DataFrame:
        """One row a token."""
        return pd.DataFrame(
            {
                "position": range(len(self.tokens)),
                "token": self.tokens.labels,
                "rows differ by": self.distances,
                **{f"{name} misses": shares for name, shares in self.missed.items()},
            }
        )


@cached(key=lambda run, layer, heads: (*run.key, layer, heads))
def two_heads(run: Run, layer: int, heads: tuple[int, int]) -> TwoHeads:
    """What two heads hand on, and what one head in their place misses."""
    import torch

    from pages.learn.why_several_heads.experiment import one_map

    tensors = run.tensors
    weights = tensors.weights[layer, list(heads)]
    out_weight = run.pretrained.core.out_weight(layer).detach().float().cpu()
    visible = torch.ones(weights.shape[-2:], dtype=torch.bool)
    with torch.inference_mode():
        values = one_map.written(tensors.v[layer], out_weight, heads)
        both = one_map.hand_on(weights, values)
        average = one_map.average_map(weights)
        best = one_map.best_map(values, both, visible.tril() if run.causal else visible)
        handed_on = {
            name: one_map.hand_on_with_one_map(single, values)
            for name, single in ((AVERAGE, average), (BEST, best.float()))
        }
        return TwoHeads(
            names=(str(HeadId(layer, heads[0])), str(HeadId(layer, heads[1]))),
            tokens=run.tokens,
            causal=run.causal,
            maps=weights.numpy(),
            average=average.numpy(),
            distances=((weights[0] - weights[1]).abs().sum(dim=-1) / 2).numpy(),
            missed={
                name: one_map.missed(both, output).numpy() for name, output in handed_on.items()
            },
            whole={
                name: float(one_map.missed(both.flatten(), output.flatten()))
                for name, output in handed_on.items()
            },
        )


def looks_at(heads: TwoHeads, token: int) -> tuple[int, int]:
    """The other token at which each head looks most from this one.

    The first token of a decoder and special tokens are left out where others are there: heads with
    nothing to say rest there (Xiao et al. 2023, https://arxiv.org/abs/2309.17453).
    """
    places = np.arange(len(heads.tokens))
    resting = np.array(heads.tokens.special)
    resting[0] |= heads.causal
    seen = places <= token if heads.causal else places >= 0
    others = seen & ~resting & (places != token)
    allowed = others if others.any() else seen
    first, second = np.where(allowed, heads.maps[:, token], -1.0).argmax(axis=-1).tolist()
    return first, second


def where_it_looks(heads: TwoHeads, token: int) -> str:
    """A sentence about the key that each head gives most of this token, and about their average."""
    labels = [isolated(label) for label in heads.tokens.labels]
    first, second = looks_at(heads, token)
    weights = heads.maps[0, token, first], heads.maps[1, token, second]
    average = heads.average[token, [first, second]]
    a, b = heads.names
    if first == second == token:
        return (
            f"“{labels[token]}” sees no other word: in {a} it gives itself {percent(weights[0])}, "
            f"in {b} {percent(weights[1])}."
        )
    begin = f"Of the other words, “{labels[token]}” looks most at “{labels[first]}” in "
    if first == second:
        return (
            f"{begin}both heads: {percent(weights[0])} in {a}, {percent(weights[1])} in {b}. The "
            f"average gives it {percent(average[0])}."
        )
    return (
        f"{begin}{a} ({percent(weights[0])}) and at “{labels[second]}” in {b} "
        f"({percent(weights[1])}). The average gives them {percent(average[0])} and "
        f"{percent(average[1])}."
    )


def row_of(heads: TwoHeads, token: int) -> pd.DataFrame:
    """The rows of a token in both maps and in the average: `token`, `map`, `weight`.

    Of a long text the `MOST_KEYS` keys with the largest weight in either map, in their order.
    `place` numbers them, as words may be equal.
    """
    rows = dict(zip(heads.names, heads.maps[:, token], strict=True))
    rows[AVERAGE] = heads.average[token]
    n_seen = token + 1 if heads.causal else len(heads.tokens)
    largest = heads.maps[:, token, :n_seen].max(axis=0)
    keys = np.sort(np.argsort(-largest, kind="stable")[:MOST_KEYS])
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
