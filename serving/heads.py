"""Names of heads (L3H1 is head 1 of layer 3, numbered from 0), and their strongest token pairs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pretrained.tokenization.alignment import word_tokens
from serving.content_words import roles

if TYPE_CHECKING:
    from serving.runs import Run


@dataclass(frozen=True, order=True)
class HeadId:
    """A head of a model; its text form is the one used in the literature, "L3H1"."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}"

    @classmethod
    def parse(cls, name: str) -> HeadId:
        """Parse a name such as "L3H1".

        Raises: ValueError for any other text.
        """
        match = re.fullmatch(r"L([0-9]{1,4})H([0-9]{1,4})", name)
        if match is None:
            raise ValueError(f"{name!r} isn't a head. Write head 1 of layer 3 as L3H1.")
        return cls(int(match[1]), int(match[2]))


def all_heads(n_layers: int, n_heads: int) -> list[str]:
    """The names of all heads, layer by layer."""
    return [str(HeadId(layer, head)) for layer in range(n_layers) for head in range(n_heads)]


def strongest_tokens(run: Run, layer: int, head: int, *, causal: bool = False) -> tuple[int, int]:
    """The query and key of a head's largest weight among the most interesting pairs.

    causal: leave out keys after the query, even in an encoder.
    """
    weights = run.weights[layer, head]
    best = np.where(_informative_pairs(run, causal), weights, -1.0).argmax()
    return divmod(int(best), len(weights))


def first_head(run: Run) -> HeadId:
    """The head with the largest weight among the most interesting pairs."""
    n_heads = run.weights.shape[1]
    best = np.where(_informative_pairs(run), run.weights, -1.0).max(axis=(2, 3))  # (L, H)
    return HeadId(*divmod(int(best.argmax()), n_heads))


def _informative_pairs(run: Run, causal: bool = False) -> np.ndarray:
    """A mask (T, S) of the most interesting pairs of tokens in the text.

    In order of preference: a pronoun and a content word before it, two content words that aren't
    adjacent, two different ordinary tokens, any pair. Special tokens aren't ordinary. Neither is a
    decoder's first token, because it's an attention sink (Xiao et al. 2023,
    https://arxiv.org/abs/2309.17453).
    """
    tokens = run.tokens
    resting = np.array(tokens.special)
    resting[0] |= run.causal
    position = np.arange(len(tokens))
    distance = position[:, None] - position
    ordinary = ~(resting[:, None] | resting) & (distance != 0)
    if run.causal or causal:
        ordinary &= distance > 0
    kinds = np.array(roles(tokens))
    words = np.array([word_tokens(tokens, token) or "" for token in range(len(tokens))])
    content = ordinary & (kinds == "content") & (words[:, None] != words)
    choices: tuple[np.ndarray, ...] = (
        content & (kinds == "pronoun")[:, None] & (distance > 0),
        content & (kinds == "content")[:, None] & (abs(distance) > 1),
        ordinary,
    )
    anything = np.full(ordinary.shape, True)
    return next((pairs for pairs in choices if pairs.any()), anything)
