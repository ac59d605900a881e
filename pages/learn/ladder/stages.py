"""Panels and numbers for each rung of the page "Ladder"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from serving import models
from serving.limits import MAX_LESSON_TOKENS, check_text
from serving.prompts import prepare_prompt
from ui.canvas.tensors import Panel, Quantity
from ui.canvas.tensors.provenance import provenance
from ui.text.formatting import format_number
from ui.widgets.questions import Question

if TYPE_CHECKING:
    import torch

    from pages.learn.ladder.experiment.ladder import Rung

SEED_NOTES = 8  # rows or columns drawn of a wide tensor; the computation uses all of them

# Names of the rungs in the URL and in pages.learn.ladder.experiment.ladder.
RUNGS = ("simplified", "v1", "v2", "causal", "dropout", "wrapper", "splits")
NEW = {
    "simplified": "In *self*-attention each token looks for similar tokens in its own sentence. "
    "Nothing is learned yet.",
    "v1": "Three trainable matrices turn each token into a query, a key and a value. Scores are "
    "divided by √D, because otherwise large scores could give one token all the attention.",
    "v2": "The matrices become `nn.Linear` layers, which start with small weights, so no token "
    "wins before anything is learned. PyTorch stores each matrix transposed.",
    "causal": "A token may not look ahead, because the model is trained to predict what comes "
    "next. Forbidden scores become −∞ before the softmax.",
    "dropout": "During training, weights are dropped at random, so that the model doesn't rely on "
    "a single token. The kept weights are scaled up.",
    "wrapper": "One head has only one attention map, so we run several heads. Each has its own "
    "three matrices, and their outputs are placed side by side.",
    "splits": "Instead of three small products per head, we need just three large ones. Each large "
    "result is split into heads, and `out_proj` mixes their outputs at the end.",
}
CHECKS = {
    "simplified": "plain Python loops",
    "v1": "“simplified” if the matrices are the identity and nothing is scaled",
    "v2": "“v1” if the same matrices are stored transposed",
    "causal": "“v2” if the mask is switched off",
    "dropout": "“causal” if p is 0",
    "wrapper": "its heads, run one by one and placed side by side",
    "splits": "“wrapper” if its weights are stacked and out_proj is the identity",
}
# The matrix M in a score x_i M x_j; `nn.Linear` stores its matrices transposed.
BETWEEN = {
    "simplified": "the identity, because there are no matrices yet",
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

# The statement that computes queries, keys and values on each rung.
_PROJECTED = {
    "simplified": (RUNGS_FILE, "run_rung", "attention"),
    "v1": (LADDER, "SelfAttentionV1.record", "attention"),
    "v2": (LADDER, "SelfAttentionV2.record", "attention"),
    "causal": (LADDER, "CausalAttention.record", "attention"),
    "dropout": (LADDER, "CausalAttention.record", "attention"),
    "wrapper": (LADDER, "CausalAttention.record", "attention"),
    "splits": (LADDER, "MultiHeadAttention.forward", "queries", "keys", "values"),
}
# The statement that computes each later tensor.
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
TOKENS = ("head", "token", "query", "key")  # axes that are never cropped


@dataclass(frozen=True)
class Sentence:
    """Tokens with one row of numbers each: `rows` is (T, d_in) float32."""

    labels: tuple[str, ...]
    rows: np.ndarray

    def part(self, first: int, most: int) -> Sentence:
        """At most `most` of its tokens, starting at `first`."""
        return Sentence(self.labels[first : first + most], self.rows[first : first + most])


@dataclass(frozen=True)
class Stage:
    """Tensors computed together, and the code that computes them: file, function and anchors."""

    panels: tuple[Panel, ...]
    code: tuple[str, ...]


def example(name: str) -> Sentence:
    """An example sentence from the lectures: "journey" (six tokens) or "boy" (nine)."""
    from attention_core import lecture_inputs

    inputs = {"journey": lecture_inputs.JOURNEY, "boy": lecture_inputs.BOY}[name]
    return Sentence(inputs.tokens, inputs.embeddings.numpy())


def matrix(rows: np.ndarray) -> Sentence:
    """A visitor's own matrix; the tokens are named "row 0", "row 1" and so on."""
    return Sentence(tuple(f"row {row}" for row in range(len(rows))), rows)


def embedded(model: str, text: str) -> Sentence:
    """Token embeddings of a text, before positions are added.

    Raises: OverLimit for more than `MAX_LESSON_TOKENS` tokens, ValueError for a text without
    tokens. Other errors: as in loading a model.
    """
    import torch

    check_text(text)
    loaded = models.get(model)
    tokens = prepare_prompt(loaded, text, MAX_LESSON_TOKENS, "this page").tokens
    with torch.inference_mode():
        ids = torch.tensor(tokens.ids, device=loaded.device)
        rows = loaded.core.token_vectors(ids).float().cpu().numpy()
    return Sentence(tokens.labels, rows)


def run_rung(
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
    """Run one rung on a sentence; see `experiment.ladder.run_rung`."""
    import torch

    from pages.learn.ladder.experiment import ladder

    settings = ladder.RungSettings(d_out, n_heads, dropout, causal, seed, draw)
    # copy because torch needs writable memory
    return ladder.run_rung(name, torch.tensor(sentence.rows), settings)


def stages(
    rung: Rung, labels: Sequence[str], cell: tuple[int, int, int], dropout: float = 0.0
) -> list[Stage]:
    """All tensors of a rung in order of computation; `cell` (head, i, j) is framed.

    dropout: the probability of dropping a weight.
    """
    from pages.learn.ladder.experiment.provenance import computations, identities, tensors

    whole, computed, cells = tensors(rung), computations(rung, dropout), identities(rung)

    def panel(name: str) -> Panel:
        axes = _axes(rung, name, whole[name].dim())
        indices = [
            range(size if axis in TOKENS else min(size, SEED_NOTES))
            for axis, size in zip(axes, whole[name].shape, strict=True)
        ]
        window = np.ix_(*indices)
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
            provenance=provenance(computed.get(name), whole, indices),
            mark=(cell[-len(axes) :],) if square else (),
            note=scaled or _crop_note(whole[name].numpy(), values),
        )

    before_scores = [name for name in whole if name not in _CODE]
    return [
        Stage(tuple(map(panel, before_scores)), _PROJECTED[rung.name]),
        *(Stage((panel(name),), _statement(rung, name)) for name in whole if name in _CODE),
    ]


def _axes(rung: Rung, name: str, n_axes: int) -> tuple[str, ...]:
    """Axis names of a tensor of a rung."""
    if name in ("x", "output"):
        return ("token", "column")
    if name in _CODE or name in ("q", "k", "v"):
        square = name in ("scores", "masked", "scaled", "attention", "weights")
        return (("head", "query", "key") if square else ("head", "token", "column"))[-n_axes:]
    if rung.name == "v1":
        return ("input", "output")
    # the layout of nn.Linear; a bias has only the output axis
    return ("output",) if n_axes == 1 else ("head", "output", "input")[-n_axes:]


def _statement(rung: Rung, name: str) -> tuple[str, ...]:
    """The statement that computes a tensor after q, k and v."""
    if name == "weights" and rung.name == "dropout":
        return (ATTEND, "attend", "weights")
    if name == "output" and rung.name == "wrapper":
        return (LADDER, "MultiHeadAttentionWrapper.forward", "side by side")
    return _CODE[name]


def _crop_note(whole: np.ndarray, corner: np.ndarray) -> str:
    if whole.shape == corner.shape:
        return ""
    sizes = " × ".join(str(size) for size in whole.shape)
    return f"Drawn: the first {SEED_NOTES} of {sizes}. All are used."


def by_hand(rung: Rung, head: int, i: int, j: int) -> tuple[pd.DataFrame, float, float]:
    """The terms of q[i] · k[j], their sum, and the score it should equal."""
    from pages.learn.ladder.experiment.ladder import products

    record = rung.record
    query, key = rung.head(record.q, head)[i], rung.head(record.k, head)[j]
    terms = products(query, key)
    table = pd.DataFrame({"query": query.numpy(), "key": key.numpy(), "product": terms.numpy()})
    table.index.name = "column"
    return table, float(terms.sum()), float(rung.head(record.scores, head)[i, j])


def search(rung: Rung, head: int, i: int, labels: Sequence[str]) -> pd.DataFrame:
    """Search results of query i: every visible key, sorted by score.

    The last column is the first number of the value times the weight, a term of the context.
    """
    weights, scores, values = (
        rung.head(tensor, head)
        for tensor in (rung.record.weights, rung.record.scores, rung.record.v)
    )
    visible = rung.head(rung.record.masked_scores, head)[i].isfinite()
    ranked = scores[i].argsort(descending=True, stable=True)
    order = ranked[visible[ranked]].tolist()
    more = " …" if values.shape[-1] > SEED_NOTES else ""
    return pd.DataFrame(
        {
            "position": order,
            "key": [labels[j] for j in order],
            "score": scores[i][order].numpy(),
            "weight": weights[i][order].numpy(),
            "value": [
                "  ".join(f"{value:.3f}" for value in values[j, :SEED_NOTES].tolist()) + more
                for j in order
            ],
            "weight × first number": (weights[i] * values[:, 0])[order].numpy(),
        }
    )


@dataclass(frozen=True)
class Asymmetry:
    """The scores of two tokens in both directions, and the matrix M between them.

    i_to_j, j_to_i: scores[i, j] and scores[j, i]. matrix: the first rows and columns of
    M = W_q W_k^T, which is (d_in, d_in). largest: the largest |M - M^T|.
    """

    i_to_j: float
    j_to_i: float
    matrix: Panel
    largest: float


def asymmetry(rung: Rung, head: int, i: int, j: int) -> Asymmetry:
    """Compare the scores of tokens i and j in both directions."""
    from pages.learn.ladder.experiment.ladder import projections, score_matrix

    scores = rung.head(rung.record.scores, head)
    between = score_matrix(*projections(rung, head))
    corner = between[:SEED_NOTES, :SEED_NOTES].numpy()
    return Asymmetry(
        i_to_j=float(scores[i, j]),
        j_to_i=float(scores[j, i]),
        matrix=Panel("M", corner, ("input", "input"), note=_crop_note(between.numpy(), corner)),
        largest=float((between - between.T).abs().max()),
    )


def before_softmax(rung: Rung) -> str:
    """Describe what this rung does to its scores before the softmax, if anything."""
    record = rung.record
    masks = not record.masked_scores.isfinite().all()
    done = ["masks"] * masks + ["scales"] * (record.scale != 1)
    if not done:
        return ""
    return f"This rung also {' and '.join(done)} its scores q · k before its own softmax."


def compare_softmaxes(
    rung: Rung, head: int, i: int, times: float, labels: Sequence[str]
) -> tuple[pd.DataFrame, str]:
    """Weights of one row of scores times a factor, computed in three ways.

    Also returns a message that says how many of the naive weights are nan.
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
    # format here because Streamlit leaves nan cells empty
    formatted = table.copy()
    for column in formatted.columns[1:]:
        formatted[column] = [format_number(value, ".4g") for value in table[column]]
    broken = int(naive.isnan().sum())
    if broken:
        why = (
            "exp overflowed to infinity"
            if bool(scores.exp().isinf().any())
            else "every exp became 0, and 0 / 0 isn't a number"
        )
        return formatted, f"{broken} of {len(table)} naive weights are nan because {why}."
    difference = float((naive - stable_softmax(scores)).abs().max())
    return (
        formatted,
        f"Naive and stable softmax agree to within {format_number(difference, '.1e')}.",
    )


def questions() -> list[Question]:
    """Three questions about the six-token sentence, answered from its tensors."""
    import torch

    from attention_core import lecture_inputs
    from pages.learn.ladder.experiment.ladder import V1, run_rung
    from pages.learn.ladder.experiment.softmaxes import naive_softmax

    x, tokens = lecture_inputs.JOURNEY.embeddings, lecture_inputs.JOURNEY.tokens
    simple, v1 = run_rung("simplified", x), run_rung(V1, x)
    weights = simple.record.weights[2]
    best = int(weights.argmax())
    simple_scores, v1_scores = simple.record.scores, v1.record.scores
    equal = [
        bool(torch.allclose(scores, scores.T, atol=1e-6)) for scores in (simple_scores, v1_scores)
    ]
    names = {
        (True, True): "On simplified and on v1",
        (True, False): "Only on simplified",
        (False, True): "Only on v1",
        (False, False): "On neither",
    }
    factor = _first_overflow(x)
    broken = bool(naive_softmax(simple_scores[1] * factor).isnan().any())
    return [
        Question(
            prompt="On the rung “simplified” with six tokens, which token gets the largest weight "
            "from “starts”?",
            right=tokens[best],
            wrong=tuple(token for token in tokens if token != tokens[best]),
            explanation=f"“starts” gives {weights[best]:.4f} to “{tokens[best]}” and "
            f"{weights[2]:.4f} "
            "to itself. The longer vector has the larger dot product.",
        ),
        Question(
            prompt="Compare the score of “with” for “journey” and the score of “journey” for "
            "“with”. "
            "On which rung are they the same?",
            right=names[equal[0], equal[1]],
            wrong=tuple(name for symmetric, name in names.items() if symmetric != tuple(equal)),
            explanation=f"On simplified they are {simple_scores[1, 3]:.4f} and "
            f"{simple_scores[3, 1]:.4f}. On v1 they are {v1_scores[1, 3]:.4f} and "
            f"{v1_scores[3, 1]:.4f}, because queries and keys come from different matrices.",
        ),
        Question(
            prompt=f"Multiply the scores of “journey” by {factor}. What does the naive softmax "
            "return?",
            right="Some nan" if broken else "Numbers that sum to 1",
            wrong=("Numbers that sum to 1" if broken else "Some nan", "All zeros"),
            explanation=f"The largest score becomes {simple_scores[1].max() * factor:.1f}, but in "
            f"float32 exp overflows above {np.log(np.finfo(np.float32).max):.1f}.",
        ),
    ]


def _first_overflow(x: torch.Tensor) -> int:
    """The first multiple of 10 that makes exp of the second token's scores overflow."""
    from pages.learn.ladder.experiment.ladder import run_rung

    scores = run_rung("simplified", x).record.scores[1]
    return next(factor for factor in range(10, 1000, 10) if (scores * factor).exp().isinf().any())
