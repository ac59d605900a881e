"""The name of a head, L3H1: head 1 of layer 3, both counted from 0; and pairs of tokens in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pretrained import CatalogEntry, Tokens
from pretrained.tokenization.alignment import word_of

if TYPE_CHECKING:
    from serving.runs import Run


@dataclass(frozen=True, order=True)
class HeadId:
    """A head of a model. As text it is written as in the literature: "L3H1"."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}"

    @classmethod
    def parse(cls, name: str) -> HeadId:
        """The head that a name such as "L3H1" stands for.

        Raises: ValueError for any other text.
        """
        match = re.fullmatch(r"L([0-9]{1,4})H([0-9]{1,4})", name)
        if match is None:
            raise ValueError(f"{name!r} is no head; write one as L3H1.")
        return cls(int(match[1]), int(match[2]))


@dataclass(frozen=True)
class HeadChoice:
    """One head of one model."""

    entry: CatalogEntry
    layer: int
    head: int

    @property
    def title(self) -> str:
        """How the head is named on screen."""
        return f"{self.entry.spec.title}, {HeadId(self.layer, self.head)}"

    @property
    def short_title(self) -> str:
        """The same without what the model's title says in brackets, for a narrow picture."""
        return f"{self.entry.spec.title.partition(' (')[0]}, {HeadId(self.layer, self.head)}"


def all_heads(n_layers: int, n_heads: int) -> list[str]:
    """The names of all heads, layer by layer."""
    return [str(HeadId(layer, head)) for layer in range(n_layers) for head in range(n_heads)]


@dataclass(frozen=True)
class TokenPair:
    """A query and a key, by their positions in a text that a model has cut."""

    tokens: Tokens
    query: int
    key: int

    def numbers(self) -> dict[str, str]:
        """For the address of a page that counts tokens."""
        return {"query": str(self.query), "key": str(self.key)}

    def words(self) -> dict[str, str]:
        """For the address of the page "Word pairs"; empty where one of the tokens is in no word."""
        query, key = (word_of(self.tokens, token) for token in (self.query, self.key))
        return {"query": query, "a": key} if query and key else {}


def strongest(run: Run, layer: int, head: int, *, causal: bool = False) -> tuple[int, int]:
    """The query and the key of the strongest weight between two ordinary tokens; else of any.

    Special tokens are left out, and so is the first key of a decoder: heads with nothing to say
    rest there (Xiao et al. 2023, https://arxiv.org/abs/2309.17453). causal: keys behind the query
    are left out in an encoder too.
    """
    weights = run.weights[layer, head]
    resting = np.array(run.tokens.special)
    resting[0] |= run.causal
    left_out = resting[:, None] | resting[None, :] | np.eye(len(weights), dtype=bool)
    if run.causal or causal:
        left_out[np.triu_indices(len(weights), 1)] = True
    ordinary = np.where(left_out, -1.0, weights)
    best = (ordinary if ordinary.max() >= 0 else weights).argmax()
    return divmod(int(best), len(weights))
