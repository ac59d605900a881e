"""A word of the visitor's text beside the other words of it and beside the whole vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from serving import models
from serving.cache import cached
from serving.limits import MAX_LESSON_TOKENS
from serving.prompts import prepare
from serving.token_text import pieces
from ui.text.isolated import isolated

if TYPE_CHECKING:
    from torch import Tensor

    from pages.learn.similarity.experiment.word_vectors import DotProducts
    from pretrained import Tokens

NEIGHBOURS = 6  # of each list
IN_TEXT, BY_COSINE, BY_DOT = "your text", "by cosine", "by dot product"
PURPOSE = "this lesson"
# How the numbers of `Nearness.table` are written.
FORMS = {"length": "{:.3f}", "cosine": "{:.3f}", "degrees": "{:.1f}", "dot product": "{:.3f}"}


@dataclass(frozen=True)
class Nearness:
    """How near the other tokens are to one token of a text, as rows of the token table.

    tokens: of the text, the chosen one at `chosen`. length: of its vector, which has `width`
    numbers. text, by_cosine, by_dot: tables with a row for each other token of the text, and for
    the nearest ones of the vocabulary: `token`, `length`, `cosine`, `degrees`, `dot`, and `along`
    and `across`, how far it reaches in the direction of the chosen one and away from it. nearer:
    how many tokens of the vocabulary have a larger dot product with the chosen one than it has
    with itself. mean_length: of all tokens. n_both: how many tokens are in both lists.
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
        """The chosen token as it is written in a sentence of ours."""
        return isolated(self.tokens.labels[self.chosen])

    @property
    def points(self) -> pd.DataFrame:
        """All tables below each other; the column `which` says which one a row is from."""
        named = {IN_TEXT: self.text, BY_COSINE: self.by_cosine, BY_DOT: self.by_dot}
        return pd.concat([rows.assign(which=which) for which, rows in named.items()])

    @property
    def table(self) -> pd.DataFrame:
        """The other tokens of the text, one row each."""
        named = self.text.rename(columns={"dot": "dot product"})
        return named[["token", *FORMS]]

    @property
    def sentences(self) -> list[str]:
        """What to notice, from the numbers."""
        nearest = self.text.loc[self.text["cosine"].idxmax()]
        lengths = (self.by_dot["length"].mean(), self.by_cosine["length"].mean())
        return [
            f"“{self.word}” · “{isolated(nearest['token'])}” = {self.length:.2f} × "
            f"{nearest['length']:.2f} × {nearest['cosine']:.3f} = {nearest['dot']:.2f}: length "
            f"times length times the cosine of their angle, {nearest['degrees']:.0f}°. The "
            f"{self.width} products of their numbers add up to the same. In the token table, "
            "before any layer, no other token of the text is nearer in angle.",
            f"The {NEIGHBOURS} tokens nearest by dot product have a mean length of "
            f"{lengths[0]:.2f}, those nearest by cosine {lengths[1]:.2f}, all {self.vocabulary:,} "
            f"tokens {self.mean_length:.2f}; {self.n_both} are in both lists. {self.nearer:,} "
            f"tokens have a larger dot product with “{self.word}” than it has with itself.",
        ]


def tokens_of(name: str, text: str) -> Tokens:
    """The tokens of a text, at least two. Raises: as `nearness`."""
    model = models.get(name)
    limit = min(MAX_LESSON_TOKENS, model.core.config.context_length)
    tokens = prepare(model, text, limit, PURPOSE).tokens
    if len(tokens) < 2:
        raise ValueError("This text is a single token: type another word to compare it with.")
    return tokens


@cached(key=lambda name, text, chosen: (*models.key(name), text, chosen))
def nearness(name: str, text: str, chosen: int) -> Nearness:
    """The token at place `chosen` of a text beside all others, in the token table of a model.

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
        own = tokens.ids[chosen]
        compared = products(table[own], table, _lengths(models.key(name)))
        nearest = [largest(compared.cosines, NEIGHBOURS, without=own),
                   largest(compared.dots, NEIGHBOURS, without=own)]  # fmt: skip
        by_cosine, by_dot = (found.tolist() for found in nearest)
        others = [place for place in range(len(tokens)) if place != chosen]
        labels = [tokens.labels[place] for place in others]
        in_text = _rows(compared, [tokens.ids[place] for place in others], labels)
        return Nearness(
            tokens=tokens,
            chosen=chosen,
            length=compared.length,
            width=table.shape[1],
            text=in_text,
            by_cosine=_rows(compared, by_cosine, pieces(model.tokenizer, by_cosine)),
            by_dot=_rows(compared, by_dot, pieces(model.tokenizer, by_dot)),
            nearer=int((compared.dots > compared.dots[own]).sum()),
            mean_length=float(compared.lengths.mean()),
            vocabulary=len(table),
            n_both=len(set(by_cosine) & set(by_dot)),
        )


@cached(key=lambda where: where)
def _lengths(where: tuple[str, str]) -> Tensor:
    """The length of every vector of the token table of a model, (V)."""
    import torch

    from pages.learn.similarity.experiment.word_vectors import token_table

    with torch.inference_mode():
        return token_table(models.loaded(where).core).float().norm(dim=-1)


def _rows(
    compared: DotProducts, ids: list[int], labels: list[str] | tuple[str, ...]
) -> pd.DataFrame:
    named = {
        "length": compared.lengths,
        "cosine": compared.cosines,
        "degrees": compared.degrees,
        "dot": compared.dots,
        "along": compared.along,
        "across": compared.across,
    }
    columns = {name: values[ids].float().cpu().numpy() for name, values in named.items()}
    return pd.DataFrame({"token": labels, **columns})


def listed(table: pd.DataFrame, by: str) -> pd.DataFrame:
    """A list of neighbours as `ui.charts.bars` takes it; by: "cosine" or "dot product"."""
    field = {"cosine": "cosine", "dot product": "dot"}[by]
    return table.rename(columns={"token": "label", field: "value"})[["label", "value"]]
