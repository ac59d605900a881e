"""Similarity of one token to the rest of the text and to the whole vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from serving import models
from serving.cache import cached
from serving.limits import MAX_LESSON_TOKENS
from serving.prompts import prepare_prompt
from serving.token_text import pieces
from ui.text.formatting import plural
from ui.text.isolated import isolated

if TYPE_CHECKING:
    from torch import Tensor

    from pages.learn.similarity.experiment.word_vectors import DotProducts
    from pretrained import Tokens

NEIGHBOURS = 6  # tokens in each list
LONGER = 1.2  # "long vectors win" if their mean length is at least this many times larger
IN_TEXT, BY_COSINE, BY_DOT = "your text", "by cosine", "by dot product"
PURPOSE = "this lesson"
# number formats of `Nearness.table`
FORMS = {"length": "{:.3f}", "cosine": "{:.3f}", "degrees": "{:.1f}", "dot product": "{:.3f}"}


@dataclass(frozen=True)
class Nearness:
    """The similarity of a text's other tokens to one of them, in the token table.

    tokens: the text's tokens; the chosen one is at `chosen`. length: length of its vector, which
    has `width` numbers. text, by_cosine, by_dot: one row per other token of the text, and per
    nearest token of the vocabulary. Their columns are `token`, `length`, `cosine`, `degrees`,
    `dot`, `along` (the component along the chosen vector) and `across` (the perpendicular one).
    nearer: how many tokens of the vocabulary have a larger dot product with the chosen token than
    it has with itself.
    mean_length: mean length of all tokens in the vocabulary. n_both: how many tokens are in both
    lists.
    """

    tokens: Tokens
    chosen: int
    length: float
    width: int
    text: pd.DataFrame
    by_cosine: pd.DataFrame
    by_dot: pd.DataFrame
    nearer: int
    mean_length: float
    vocabulary: int
    n_both: int

    @property
    def word(self) -> str:
        """The chosen token, ready to be quoted in a sentence."""
        return isolated(self.tokens.labels[self.chosen])

    @property
    def points(self) -> pd.DataFrame:
        """All three tables concatenated; the column `which` names the table."""
        by_name = {IN_TEXT: self.text, BY_COSINE: self.by_cosine, BY_DOT: self.by_dot}
        return pd.concat([rows.assign(which=which) for which, rows in by_name.items()])

    @property
    def table(self) -> pd.DataFrame:
        """One row per other token of the text."""
        by_name = self.text.rename(columns={"dot": "dot product"})
        return by_name[["token", *FORMS]]

    @property
    def sentences(self) -> list[str]:
        """Observations about the numbers, each as a short paragraph."""
        nearest = self.text.loc[self.text["cosine"].idxmax()]
        by_dot, by_cosine = self.by_dot["length"].mean(), self.by_cosine["length"].mean()
        claim = (
            f"For “{self.word}”, long vectors win the dot product."
            if by_dot > LONGER * by_cosine
            else f"For “{self.word}”, length makes little difference."
        )
        larger = {0: "No other token has", 1: "1 token of the vocabulary has"}.get(
            self.nearer, f"{self.nearer:,} tokens of the vocabulary have"
        )
        return [
            f"“{self.word}” · “{isolated(nearest['token'])}” = {self.length:.2f} × "
            f"{nearest['length']:.2f} × {nearest['cosine']:.3f} = {nearest['dot']:.2f}: both "
            f"lengths times the cosine of their angle ({nearest['degrees']:.0f}°). It's also the "
            f"sum of the {self.width} products of their entries. No other token of your text is "
            f"closer in direction to “{self.word}”.",
            f"{claim} The {NEIGHBOURS} tokens with the largest dot products have a mean length of "
            f"{by_dot:.2f}. For the {NEIGHBOURS} with the largest cosines, it's {by_cosine:.2f}, "
            f"and for all {self.vocabulary:,} tokens it's {self.mean_length:.2f}. The two lists "
            f"share {plural(self.n_both, 'token')}. {larger} a larger dot product with "
            f"“{self.word}” than it has with itself.",
        ]


def tokens_of(name: str, text: str) -> Tokens:
    """Split a text into at least two tokens; raises the same errors as `nearness`."""
    model = models.get(name)
    limit = min(MAX_LESSON_TOKENS, model.core.config.context_length)
    tokens = prepare_prompt(model, text, limit, PURPOSE).tokens
    if len(tokens) < 2:
        raise ValueError("Your text is a single token. Type another word to compare it with.")
    return tokens


@cached(key=lambda name, text, choice: (*models.key(name), text, choice))
def nearness(name: str, text: str, choice: int) -> Nearness:
    """Compare token `choice` of a text with all others, in a model's token table.

    Raises: OverLimit for too many tokens, ValueError for fewer than two; `models.LOAD_ERRORS`.
    """
    import torch

    from pages.learn.similarity.experiment.word_vectors import (
        largest,
        products,
        token_table,
    )

    model, tokens = models.get(name), tokens_of(name, text)
    with torch.inference_mode():
        table = token_table(model.core).float()
        own = tokens.ids[choice]
        dot_products = products(table[own], table, _lengths(models.key(name)))
        nearest = [largest(dot_products.cosines, NEIGHBOURS, without=own),
                   largest(dot_products.dots, NEIGHBOURS, without=own)]  # fmt: skip
        by_cosine, by_dot = (found.tolist() for found in nearest)
        others = [place for place in range(len(tokens)) if place != choice]
        labels = [tokens.labels[place] for place in others]
        in_text = _rows(dot_products, [tokens.ids[place] for place in others], labels)
        return Nearness(
            tokens=tokens,
            chosen=choice,
            length=dot_products.length,
            width=table.shape[1],
            text=in_text,
            by_cosine=_rows(dot_products, by_cosine, pieces(model.tokenizer, by_cosine)),
            by_dot=_rows(dot_products, by_dot, pieces(model.tokenizer, by_dot)),
            nearer=int((dot_products.dots > dot_products.dots[own]).sum()),
            mean_length=float(dot_products.lengths.mean()),
            vocabulary=len(table),
            n_both=len(set(by_cosine) & set(by_dot)),
        )


@cached(key=lambda where: where)
def _lengths(where: tuple[str, str]) -> Tensor:
    """The lengths of all vectors in a model's token table, (V)."""
    import torch

    from pages.learn.similarity.experiment.word_vectors import token_table

    with torch.inference_mode():
        return token_table(models.by_key(where).core).float().norm(dim=-1)


def _rows(
    dot_products: DotProducts, ids: list[int], labels: list[str] | tuple[str, ...]
) -> pd.DataFrame:
    by_name = {
        "length": dot_products.lengths,
        "cosine": dot_products.cosines,
        "degrees": dot_products.degrees,
        "dot": dot_products.dots,
        "along": dot_products.along,
        "across": dot_products.across,
    }
    columns = {name: values[ids].float().cpu().numpy() for name, values in by_name.items()}
    return pd.DataFrame({"token": labels, **columns})


def bar_table(table: pd.DataFrame, by: str) -> pd.DataFrame:
    """Format neighbors for `ui.charts.bars`; by: "cosine" or "dot product"."""
    field = {"cosine": "cosine", "dot product": "dot"}[by]
    return table.rename(columns={"token": "label", field: "value"})[["label", "value"]]
