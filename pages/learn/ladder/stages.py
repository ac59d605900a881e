"""The pictures and numbers of the page "Ladder" for each rung, taken from the core's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from serving import models
from serving.limits import MAX_LESSON_TOKENS, check_text
from serving.prompts import prepare
from ui.canvas.tensors import Panel, Quantity
from ui.canvas.tensors.computed import made
from ui.text.number_text import written
from ui.widgets.questions import Question

if TYPE_CHECKING:
    import torch

    from pages.learn.ladder.experiment.ladder import Rung

DRAWN = 8  # rows or columns of a wide tensor that are drawn; the computation takes all

# What the address calls the rungs; the names of pages.learn.ladder.experiment.ladder.
RUNGS = ("simplified", "v1", "v2", "causal", "dropout", "wrapper", "splits")
NEW = {
    "simplified": "*Self*-attention: a token finds its like in its own sentence. Nothing is "
    "learned.",
    "v1": "Three matrices make what a token asks with, is found by and hands over; training sets "
    "them. Scores are divided by √D, or long queries and keys let a single token win.",
    "v2": "The matrices become `nn.Linear` layers: they start small enough for their width, so "
    "that no token wins before anything is learned. Each is stored transposed.",
    "causal": "A token may not look ahead, because it is trained to guess what comes: forbidden "
    "scores become −∞ before the softmax.",
    "dropout": "While training, weights are dropped at random, so that no token is relied on "
    "alone; the kept ones are scaled up.",
    "wrapper": "One head has one map, so several heads run, each with three matrices of its own; "
    "their outputs lie side by side.",
    "splits": "One class in place of two: three products instead of three a head, with one wide "
    "matrix each for queries, keys and values, cut into heads; then `out_proj`.",
}
CHECKS = {
    "simplified": "plain Python loops",
    "v1": "simplified, with identity matrices and no scale",
    "v2": "v1, with its matrices transposed",
    "causal": "v2, with no mask",
    "dropout": "causal, with p = 0",
    "wrapper": "its heads run alone, side by side",
    "splits": "wrapper, weights stacked, out_proj = identity",
}
# The matrix between the two inputs of a score; `nn.Linear` stores its matrix transposed.
BETWEEN = {
    "simplified": "the identity, as there are no matrices yet",
    "v1": "W_q W_kᵀ",
    **dict.fromkeys(("v2", "causal", "dropout", "wrapper", "splits"), "W_qᵀ W_k, as stored"),
}
CLASSES = {
    "simplified": "simple_self_attention",
    "v1": "SelfAttentionV1",
    "v2": "SelfAttentionV2",
    "causal": "CausalAttention",
    "dropout": "CausalAttention",
    "wrapper": "MultiHeadAttentionWrapper",
    "splits": "MultiHeadAttention",
}

LADDER, ATTEND, RUNGS_FILE = (
    "attention_core/ladder.py", "attention_core/attend.py",
    "pages/learn/ladder/experiment/ladder.py",
)  # fmt: skip

# The line that makes queries, keys and values of each rung.
_PROJECTED = {
    "simplified": (RUNGS_FILE, "climb", "attention"),
    "v1": (LADDER, "SelfAttentionV1.record", "attention"),
    "v2": (LADDER, "SelfAttentionV2.record", "attention"),
    "causal": (LADDER, "CausalAttention.record", "attention"),
    "dropout": (LADDER, "CausalAttention.record", "attention"),
    "wrapper": (LADDER, "CausalAttention.record", "attention"),
    "splits": (LADDER, "MultiHeadAttention.forward", "queries", "keys", "values"),
}
# The line that makes each tensor after them.
_CODE = {
    "scores": (ATTEND, "attention_scores", "scores"),
    "masked": (ATTEND, "mask_scores", "masked"),
    "scaled": (ATTEND, "attend", "scaled"),
    "attention": (ATTEND, "attention_weights", "softmax"),
    "weights": (ATTEND, "attention_weights", "softmax"),
    "context": (ATTEND, "mix_values", "context"),
    "output": (LADDER, "MultiHeadAttention.forward", "output"),
}
QUANTITIES: dict[str, Quantity] = {
    "q": "queries", "k": "keys", "v": "values", "scores": "scores", "masked": "scores",
    "scaled": "scores", "attention": "weights", "weights": "weights",
}  # fmt: skip
TOKENS = ("head", "token", "query", "key")  # axes that are drawn whole, whatever their size


@dataclass(frozen=True)
class Sentence:
    """Tokens and one row of numbers for each: `rows` is (T, d_in) float32."""

    labels: tuple[str, ...]
    rows: np.ndarray

    def part(self, first: int, most: int) -> Sentence:
        """At most `most` of its tokens, from `first` on."""
        return Sentence(self.labels[first : first + most], self.rows[first : first + most])


@dataclass(frozen=True)
class Stage:
    """Tensors that are made together, and where: file, function and anchors."""

    panels: tuple[Panel, ...]
    code: tuple[str, ...]


def example(name: str) -> Sentence:
    """A lecture's sentence: "journey" (six tokens) or "boy" (nine)."""
    from attention_core import lecture_inputs

    chosen = {"journey": lecture_inputs.JOURNEY, "boy": lecture_inputs.BOY}[name]
    return Sentence(chosen.tokens, chosen.embeddings.numpy())


def matrix(rows: np.ndarray) -> Sentence:
    """A visitor's own numbers; the tokens are named by their positions."""
    return Sentence(tuple(f"row {row}" for row in range(len(rows))), rows)


def embedded(model: str, text: str) -> Sentence:
    """A text's rows of a model's token table, all columns, before positions are added.

    Raises: OverLimit for more than `MAX_LESSON_TOKENS` tokens, ValueError for none, and what
    loading a model raises.
    """
    import torch

    check_text(text)
    loaded = models.get(model)
    tokens = prepare(loaded, text, MAX_LESSON_TOKENS, "this page").tokens
    with torch.inference_mode():
        ids = torch.tensor(tokens.ids, device=loaded.device)
        rows = loaded.core.token_vectors(ids).float().cpu().numpy()
    return Sentence(tokens.labels, rows)


def climb(
    name: str,
    sentence: Sentence,
    *,
    d_out: int = 2,
    n_heads: int = 2,
    dropout: float = 0.5,
    causal: bool = True,
    seed: int | None = None,
    draw: int = 123,
) -> Rung:
    """One rung on a sentence; see `experiment.ladder.climb`. Takes about a millisecond."""
    import torch

    from pages.learn.ladder.experiment import ladder

    settings = ladder.RungSettings(d_out, n_heads, dropout, causal, seed, draw)
    # a copy: torch must not be handed memory that may not be written to
    return ladder.climb(name, torch.tensor(sentence.rows), settings)


def stages(
    rung: Rung, labels: Sequence[str], cell: tuple[int, int, int], dropout: float = 0.0
) -> list[Stage]:
    """Every tensor of a rung in the order in which it is made; `cell` (head, i, j) is framed.

    dropout: the probability with which weights were dropped.
    """
    from pages.learn.ladder.experiment.computed_from import computations, moved, tensors

    whole, computed, cells = tensors(rung), computations(rung, dropout), moved(rung)

    def panel(name: str) -> Panel:
        axes = _axes(rung, name, whole[name].dim())
        picked = [
            range(size if axis in TOKENS else min(size, DRAWN))
            for axis, size in zip(axes, whole[name].shape, strict=True)
        ]
        window = np.ix_(*picked)
        values = whole[name].numpy()[window]
        square = axes[-1] == "key"
        scaled = f"times {rung.record.scale:.4f}" if name == "scaled" else ""
        return Panel(
            name,
            values,
            axes,
            rows=labels if axes[-2:][0] in TOKENS else None,
            columns=labels if square else None,
            cells=cells[name].numpy()[window] if name in cells else None,
            identity=name,
            quantity=QUANTITIES.get(name, ""),
            made=made(computed.get(name), whole, picked),
            mark=(cell[-len(axes) :],) if square else (),
            note=scaled or _cut(whole[name].numpy(), values),
        )

    before_scores = [name for name in whole if name not in _CODE]
    return [
        Stage(tuple(map(panel, before_scores)), _PROJECTED[rung.name]),
        *(Stage((panel(name),), _statement(rung, name)) for name in whole if name in _CODE),
    ]


def _axes(rung: Rung, name: str, n_axes: int) -> tuple[str, ...]:
    """What the axes of a tensor of a rung count."""
    if name in ("x", "output"):
        return ("token", "column")
    if name in _CODE or name in ("q", "k", "v"):
        square = name in ("scores", "masked", "scaled", "attention", "weights")
        return (("head", "query", "key") if square else ("head", "token", "column"))[-n_axes:]
    if rung.name == "v1":
        return ("input", "output")
    # as nn.Linear keeps them; a bias has an axis of outputs alone
    return ("output",) if n_axes == 1 else ("head", "output", "input")[-n_axes:]


def _statement(rung: Rung, name: str) -> tuple[str, ...]:
    """Where in the code a tensor from the scores on is made."""
    if name == "weights" and rung.name == "dropout":
        return (ATTEND, "attend", "weights")
    if name == "output" and rung.name == "wrapper":
        return (LADDER, "MultiHeadAttentionWrapper.forward", "side by side")
    return _CODE[name]


def _cut(whole: np.ndarray, corner: np.ndarray) -> str:
    if whole.shape == corner.shape:
        return ""
    sizes = " × ".join(str(size) for size in whole.shape)
    return f"The first {DRAWN} of {sizes}; all are used."


def by_hand(rung: Rung, head: int, i: int, j: int) -> tuple[pd.DataFrame, float, float]:
    """The terms of q[i] · k[j], their sum, and the cell of the scores that it should be."""
    from pages.learn.ladder.experiment.ladder import products

    record = rung.record
    query, key = rung.head(record.q, head)[i], rung.head(record.k, head)[j]
    terms = products(query, key)
    table = pd.DataFrame({"query": query.numpy(), "key": key.numpy(), "product": terms.numpy()})
    table.index.name = "column"
    return table, float(terms.sum()), float(rung.head(record.scores, head)[i, j])


def search(rung: Rung, head: int, i: int, labels: Sequence[str]) -> pd.DataFrame:
    """What query i finds: every key that it may see, with score, weight and value, best first.

    In the last column the first number of the value, times the weight, as it goes into the sum.
    """
    weights, scores, values = (
        rung.head(tensor, head)
        for tensor in (rung.record.weights, rung.record.scores, rung.record.v)
    )
    seen = rung.head(rung.record.masked_scores, head)[i].isfinite()
    ranked = scores[i].argsort(descending=True, stable=True)
    order = ranked[seen[ranked]].tolist()
    more = " …" if values.shape[-1] > DRAWN else ""
    return pd.DataFrame(
        {
            "position": order,
            "key": [labels[j] for j in order],
            "score": scores[i][order].numpy(),
            "weight": weights[i][order].numpy(),
            "value": [
                "  ".join(f"{value:.3f}" for value in values[j, :DRAWN].tolist()) + more
                for j in order
            ],
            "weight × first number": (weights[i] * values[:, 0])[order].numpy(),
        }
    )


@dataclass(frozen=True)
class Asymmetry:
    """The scores of two tokens both ways, and the matrix between them.

    i_to_j, j_to_i: scores[i, j] and scores[j, i]. matrix: the first rows and columns of W_q W_k^T,
    which is (d_in, d_in). largest: the largest |M - M^T| of all of it.
    """

    i_to_j: float
    j_to_i: float
    matrix: Panel
    largest: float


def asymmetry(rung: Rung, head: int, i: int, j: int) -> Asymmetry:
    """Whether token i finds token j as token j finds token i, and why not."""
    from pages.learn.ladder.experiment.ladder import projections, score_matrix

    scores = rung.head(rung.record.scores, head)
    between = score_matrix(*projections(rung, head))
    corner = between[:DRAWN, :DRAWN].numpy()
    return Asymmetry(
        i_to_j=float(scores[i, j]),
        j_to_i=float(scores[j, i]),
        matrix=Panel("M", corner, ("input", "input"), note=_cut(between.numpy(), corner)),
        largest=float((between - between.T).abs().max()),
    )


def before_softmax(rung: Rung) -> str:
    """What this rung does to its scores before the softmax, where the ways here do not."""
    record = rung.record
    masks = not record.masked_scores.isfinite().all()
    done = ["masks"] * masks + ["scales"] * (record.scale != 1)
    if not done:
        return ""
    return f"These are the scores of q · k; the rung {' and '.join(done)} them before its softmax."


def three_ways(
    rung: Rung, head: int, i: int, times: float, labels: Sequence[str]
) -> tuple[pd.DataFrame, str]:
    """One row of scores, multiplied, and its weights by the sum, naively and safely.

    Also a sentence about the naive way: how many of its weights are no numbers.
    """
    from pages.learn.ladder.experiment.softmaxes import (
        naive_softmax,
        stable_softmax,
        weights_by_sum,
    )

    scores = rung.head(rung.record.scores, head)[i] * times
    naive = naive_softmax(scores)
    table = pd.DataFrame(
        {
            "token": list(labels),
            "score": scores.numpy(),
            "score / sum": weights_by_sum(scores).numpy(),
            "exp(score)": scores.exp().numpy(),
            "naive softmax": naive.numpy(),
            "stable softmax": stable_softmax(scores).numpy(),
        }
    )
    # the table would leave such cells empty
    formatted = table.copy()
    for column in formatted.columns[1:]:
        formatted[column] = [written(value, ".4g") for value in table[column]]
    broken = int(naive.isnan().sum())
    if broken:
        why = (
            "exp overflowed"
            if bool(scores.exp().isinf().any())
            else "every exp became 0, and 0 / 0 is no number"
        )
        return formatted, f"{why}: {broken} of {len(table)} naive weights are nan."
    difference = float((naive - stable_softmax(scores)).abs().max())
    return formatted, f"Naive and stable agree to {written(difference, '.1e')}."


def questions() -> list[Question]:
    """Three questions about the six-token sentence, answered by its tensors."""
    import torch

    from attention_core import lecture_inputs
    from pages.learn.ladder.experiment.ladder import V1, climb
    from pages.learn.ladder.experiment.softmaxes import naive_softmax

    x, tokens = lecture_inputs.JOURNEY.embeddings, lecture_inputs.JOURNEY.tokens
    simple, v1 = climb("simplified", x), climb(V1, x)
    weights = simple.record.weights[2]
    best = int(weights.argmax())
    simple_scores, v1_scores = simple.record.scores, v1.record.scores
    equal = [
        bool(torch.allclose(scores, scores.T, atol=1e-6)) for scores in (simple_scores, v1_scores)
    ]
    names = {
        (True, True): "on simplified and on v1",
        (True, False): "on simplified only",
        (False, True): "on v1 only",
        (False, False): "on neither",
    }
    factor = _first_overflow(x)
    broken = bool(naive_softmax(simple_scores[1] * factor).isnan().any())
    return [
        Question(
            ask="Simplified, six tokens: to which token does “starts” give its largest weight?",
            right=tokens[best],
            wrong=tuple(token for token in tokens if token != tokens[best]),
            because=f"It gives {weights[best]:.4f} to “{tokens[best]}” and {weights[2]:.4f} to "
            "itself: a longer vector wins more dot products.",
        ),
        Question(
            ask="“journey” gives “with” a score, and “with” gives “journey” one. On which rung are "
            "both the same number?",
            right=names[equal[0], equal[1]],
            wrong=tuple(name for symmetric, name in names.items() if symmetric != tuple(equal)),
            because=f"Simplified: {simple_scores[1, 3]:.4f} and {simple_scores[3, 1]:.4f}. "
            f"v1: {v1_scores[1, 3]:.4f} and {v1_scores[3, 1]:.4f}.",
        ),
        Question(
            ask=f"The scores of “journey”, times {factor}: what does naive softmax give?",
            right="some nan" if broken else "numbers that sum to 1",
            wrong=("numbers that sum to 1" if broken else "some nan", "all zeros"),
            because=f"The largest score becomes {simple_scores[1].max() * factor:.1f}, and float32 "
            f"holds exp only up to {np.log(np.finfo(np.float32).max):.1f}.",
        ),
    ]


def _first_overflow(x: torch.Tensor) -> int:
    """The first multiple of ten of the second token's scores whose exp is no float32."""
    from pages.learn.ladder.experiment.ladder import climb

    scores = climb("simplified", x).record.scores[1]
    return next(factor for factor in range(10, 1000, 10) if (scores * factor).exp().isinf().any())
