"""Search every head of a model for the attention from one word to two others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pretrained import Tokens
from pretrained.tokenization.alignment import group_labels, words
from serving.cache import cached
from serving.runs import Run

RANK = "rank of A among words"
MARGIN = 0.05  # smallest difference that counts as a preference for one of the words


@dataclass(frozen=True)
class WordUnit:
    """A word with its tokens, or a token that isn't part of a word, such as [CLS].

    `label` is unique within a text. `span`: start and end in the text, in characters.
    """

    label: str
    tokens: tuple[int, ...]
    is_word: bool
    span: tuple[int, int]


@dataclass(frozen=True)
class Search:
    """Weights of every head on two words, and the largest weights of all other word pairs.

    Arrays are (layers, heads), except `other_pairs`. `rank` is 1 plus the number of units (see
    `units`) that get more weight than the first word. `other_pairs` contains the largest weight of
    any head for every other pair of words. `is_visible` and `is_other_visible` are False if the key
    word comes after the query word in a causal model.
    """

    query: WordUnit
    key: WordUnit
    other: WordUnit
    weights: np.ndarray
    other_weights: np.ndarray
    rank: np.ndarray
    contributions: np.ndarray
    preference: np.ndarray
    other_pairs: np.ndarray
    is_visible: bool
    is_other_visible: bool

    @property
    def best(self) -> tuple[int, int]:
        """Layer and head of the largest weight."""
        layer, head = np.unravel_index(int(self.weights.argmax()), self.weights.shape)
        return int(layer), int(head)

    @property
    def n_smaller(self) -> int:
        """The number of other pairs whose largest weight is smaller."""
        return int((self.other_pairs < self.weights.max()).sum())


def units(tokens: Tokens) -> tuple[WordUnit, ...]:
    """Split a text into words and single tokens outside words, each token in one unit."""
    groups = words(tokens)
    return tuple(
        WordUnit(
            label,
            group,
            any(_holds_text(tokens, token) for token in group),
            (tokens.spans[group[0]][0], tokens.spans[group[-1]][1]),
        )
        for label, group in zip(group_labels(tokens, groups), groups, strict=True)
    )


def _holds_text(tokens: Tokens, token: int) -> bool:
    start, end = tokens.spans[token]
    return not tokens.special[token] and bool(tokens.text[start:end].strip())


def search(run: Run, text_units: tuple[WordUnit, ...], query: int, key: int, other: int) -> Search:
    """Weights from the unit `query` to the units `key` and `other` in every head.

    query, key, other: indices of `text_units`.
    """
    import torch

    from attention_core.analysis.contributions import contributions
    from pages.compare.word_pairs.experiment import (
        other_pairs,
        preference,
        unit_rank,
        unit_weights,
    )

    groups = [unit.tokens for unit in text_units]
    # only the query word's rows are needed: (layers, heads, tokens of the query, S)
    rows = run.tensors.weights[:, :, list(groups[query])]
    lengths = contributions(rows, run.tensors.value_norms)
    row_numbers = range(rows.shape[2])
    taken = unit_weights(rows, row_numbers, groups)
    ordinary = torch.tensor([unit.is_word for unit in text_units])
    largest = torch.tensor(_largest_weights(run, text_units))
    return Search(
        query=text_units[query],
        key=text_units[key],
        other=text_units[other],
        weights=taken[..., key].numpy(),
        other_weights=taken[..., other].numpy(),
        rank=unit_rank(taken, key).numpy(),
        contributions=unit_weights(lengths, row_numbers, [groups[key]])[..., 0].numpy(),
        preference=preference(taken[..., key], taken[..., other], margin=MARGIN).numpy(),
        other_pairs=other_pairs(largest, ordinary, (query, key), causal=run.causal).numpy(),
        is_visible=not run.causal or key <= query,
        is_other_visible=not run.causal or other <= query,
    )


@cached(key=lambda run, text_units: run.key)
def _largest_weights(run: Run, text_units: tuple[WordUnit, ...]) -> np.ndarray:
    """The largest weight of any head for every pair of units, cached per text."""
    from pages.compare.word_pairs.experiment import strongest_head

    heads = run.tensors.weights.flatten(0, 1)
    array: np.ndarray = strongest_head(heads, [unit.tokens for unit in text_units]).numpy()
    return array


def table(result: Search) -> pd.DataFrame:
    """One row per head, largest weight on A first."""
    layers, heads = np.indices(result.weights.shape)
    frame = pd.DataFrame(
        {
            "layer": layers.ravel(),
            "head": heads.ravel(),
            "weight on A": result.weights.ravel(),
            RANK: result.rank.ravel(),
            "contribution of A": result.contributions.ravel(),
            "weight on B": result.other_weights.ravel(),
            "A minus B": (result.weights - result.other_weights).ravel(),
        }
    )
    return frame.sort_values("weight on A", ascending=False, kind="stable", ignore_index=True)
