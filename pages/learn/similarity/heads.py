"""A head of a model on a visitor's text, beside the same text without learned matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pages.learn.similarity.words import PURPOSE
from serving import runs
from serving.cache import cached
from serving.heads import HeadId
from serving.limits import MAX_LESSON_TOKENS
from ui.text.isolated import isolated
from ui.text.number_text import percent
from ui.widgets.head_choice import HeadChoice

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core import AttentionRecord, Transformer
    from pages.learn.similarity.experiment.scores import HeadMatrices, Ways
    from pages.learn.similarity.experiment.teaching import Lesson
    from serving.runs import Run

# A way to make scores, and what is multiplied in it.
PLAIN, SCALED, SAME, HEAD = "x·xᵀ", "x·xᵀ / √C", "k·kᵀ", "q·kᵀ"


@dataclass(frozen=True)
class Head:
    """One head on a text: what it reads, its matrices, and the four ways to weigh the text.

    layer_scores: scaled scores of all heads of its layer before the mask, (H, T, T). layer_weights:
    their weights, (H, T, T).
    """

    title: str
    run: Run
    core: Transformer
    ways: Ways
    matrices: HeadMatrices
    layer_scores: Tensor
    layer_weights: Tensor
    layer: int
    number: int

    @property
    def name(self) -> str:
        """The head without its model: "L3H1"."""
        return str(HeadId(self.layer, self.number))

    @property
    def labels(self) -> tuple[str, ...]:
        """A label for every token."""
        return self.run.tokens.labels


def head(choice: HeadChoice, text: str) -> Head:
    """The chosen head on a text.

    Raises: OverLimit for a text that is too long, ValueError for one without a token, and
    `models.LOAD_ERRORS`.
    """
    import torch

    from pages.learn.similarity.experiment.scores import head_matrices, ways

    run = runs.run(choice.entry.spec.name, text, MAX_LESSON_TOKENS, PURPOSE)
    core = run.pretrained.core
    recorded = run.layer(choice.layer)
    with torch.inference_mode():
        weighed = ways(core, recorded, choice.head)
    record = recorded.attention
    return Head(
        title=choice.title,
        run=run,
        core=core,
        ways=weighed,
        matrices=head_matrices(core, choice.layer, choice.head),
        layer_scores=(record.scores * record.scale)[0].float().cpu(),
        layer_weights=record.weights[0].float().cpu(),
        layer=choice.layer,
        number=choice.head,
    )


def reasons(shown: Head, word: int) -> pd.DataFrame:
    """The course's five reasons against x·xᵀ, each with what is measured on both sides."""
    from pages.learn.similarity.experiment.scores import head_difference

    ways, matrices = shown.ways, shown.matrices
    n_tokens, width = ways.x.shape
    n_heads, d_head = len(shown.layer_weights), matrices.query.shape[1]
    plain, real = (_behaviour(record) for record in (ways.plain, ways.head))
    differ = head_difference(shown.layer_weights)
    copies = head_difference(ways.plain.weights.expand(n_heads, -1, -1))
    vectors, matrix = _taught_sentences(shown, word)
    named = nearest(shown)
    label = isolated(shown.labels[word])
    as_x, as_query, as_key, as_value = (isolated(name) for name in named.iloc[word, 1:])
    agree = int((named.iloc[:, 2:].nunique(axis=1) == 1).sum())
    rows = [
        (
            "One vector does three jobs.",
            f"By cosine, the x of “{label}” is nearest to that of “{as_x}”, as layer {shown.layer} "
            "reads them: when it asks, when it is found, and when it is handed over.",
            f"By cosine, “{label}” is nearest to “{as_query}” as a query, to “{as_key}” as a key "
            f"and to “{as_value}” as a value. All three agree for {agree} of {n_tokens} tokens.",
        ),
        (
            "Both directions score alike, and a word finds itself.",
            plain,
            real,
        ),
        (
            "All heads see the same.",
            f"{n_heads} heads with one and the same matrix: two of them differ by {copies:.0%}.",
            f"Two of the {n_heads} heads of layer {shown.layer} put {differ:.0%} of a row's weight "
            "on different tokens, on average.",
        ),
        ("Nothing but the words can learn.", vectors, matrix),
        (
            "The size cannot be chosen.",
            f"{width} products for a score, as many as x has numbers.",
            f"{d_head} products for a score, once W_q and W_k have made them.",
        ),
    ]
    head = f"{shown.title} (layer {shown.layer}, head {shown.number})"
    return pd.DataFrame(rows, columns=["five reasons against x·xᵀ", "softmax(x·xᵀ)", head])


def _behaviour(record: AttentionRecord) -> str:
    from pages.learn.similarity.experiment.scores import asymmetry, own_first, own_weight

    return (
        f"Asymmetry {asymmetry(record.scores):.3f}. A token gives itself "
        f"{percent(own_weight(record.weights))} on average, and most in "
        f"{own_first(record.weights)} of {len(record.weights)} rows."
    )


def _taught_sentences(shown: Head, word: int) -> tuple[str, str]:
    """What has to move for a new look, without matrices and with them."""
    from pages.learn.similarity.experiment.teaching import (
        largest_change_of_cosines,
        n_moved,
    )

    count = f"W_q, W_k and W_v: {shown.matrices.n_numbers:,} learned numbers."
    key = least_seen(shown, word)
    if key is None:
        return "0 learned numbers.", count
    vectors, matrix = taught(shown, word, key)
    x, pair = shown.ways.x, (shown.labels[word], shown.labels[key])
    return (
        f"An experiment: the gradient moves {n_moved(x, vectors.moved)} of {len(x)} word vectors "
        f"{_until(vectors, *pair)}. All else that reads these vectors changes with them: the "
        f"cosine of two words by up to {largest_change_of_cosines(x, vectors.moved):.3f}.",
        f"The gradient moves W_q by {matrix.share:.1%}, and no vector, {_until(matrix, *pair)}. "
        f"{count}",
    )


def _until(lesson: Lesson, query: str, key: str) -> str:
    """How far the steps along the gradient led."""
    from pages.learn.similarity.experiment.teaching import GOAL, MOST_STEPS

    gives = f"“{isolated(query)}” gives “{isolated(key)}”"
    if lesson.after >= GOAL:
        return f"until {gives} {percent(GOAL)} of its weight ({percent(lesson.before)} before)"
    return f"in {MOST_STEPS} steps, and still {gives} only {percent(lesson.after)} of its weight"


def least_seen(shown: Head, word: int) -> int | None:
    """The other token that a token gives the least weight of all it sees; None if it sees none."""
    row = shown.ways.head.weights[word].cpu().numpy().copy()
    row[word] = np.inf
    if shown.run.causal:
        row[word:] = np.inf
    key = int(row.argmin())
    return key if np.isfinite(row[key]) else None


@cached(key=lambda shown, word, key: (shown.run.key, shown.layer, shown.number, word, key))
def taught(shown: Head, word: int, key: int) -> tuple[Lesson, Lesson]:
    """Half of the weight for a new key: by moving the vectors, and by moving W_q."""
    from dataclasses import replace

    from pages.learn.similarity.experiment.teaching import (
        teach_query_matrix,
        teach_vectors,
    )

    # tensors of an inference pass take no gradients: their copies do
    ways, record = shown.ways, shown.ways.head
    record = replace(record, q=record.q.clone(), k=record.k.clone())
    ways = replace(ways, x=ways.x.clone(), head=record)
    return (
        teach_vectors(ways.x, word, key, causal=shown.run.causal),
        teach_query_matrix(shown.core.config, ways, shown.matrices, word, key),
    )


def nearest(shown: Head) -> pd.DataFrame:
    """One row a token: the other token with the largest cosine as x, query, key and value."""
    from pages.learn.similarity.experiment.word_vectors import nearest_other

    labels = shown.labels
    columns = {
        f"nearest as {name}": [labels[place] for place in nearest_other(vectors).tolist()]
        for name, vectors in zip(
            ("x", "query", "key", "value"), (shown.ways.x, *shown.ways.projected), strict=True
        )
    }
    return pd.DataFrame({"token": labels, **columns})


def handed_over(shown: Head) -> str:
    """What a token gets back without W_v and with it, as a sentence."""
    from pages.learn.similarity.experiment.word_vectors import mean_cosine

    ways, named = shown.ways, nearest(shown)
    same = int((named["nearest as x"] == named["nearest as value"]).sum())
    return (
        f"W_v: without it, a token is handed x itself. softmax(x·xᵀ)·x has a cosine of "
        f"{mean_cosine(ways.plain.context, ways.x):.3f} with the token's own x, on average. "
        f"{shown.name} hands over the {ways.head.v.shape[1]} numbers of x·W_v, in which "
        f"{same} of {len(named)} tokens have the same nearest token as in x."
    )


def measures(shown: Head) -> pd.DataFrame:
    """One row a way to make scores: what is learned in it, asymmetry, and the weight on itself."""
    from pages.learn.similarity.experiment.scores import asymmetry, own_first, own_weight

    matrices, ways = shown.matrices, shown.ways
    learned = {
        PLAIN: (0, ways.plain),
        SCALED: (0, ways.scaled),
        SAME: (matrices.key.numel(), ways.same),
        HEAD: (matrices.query.numel() + matrices.key.numel(), ways.head),
    }
    return pd.DataFrame(
        [
            {
                "scores": name,
                "learned numbers": n_learned,
                "asymmetry": asymmetry(record.scores),
                "weight on itself": own_weight(record.weights),
                "rows in which that is the largest": (
                    f"{own_first(record.weights)} of {len(record.weights)}"
                ),
            }
            for name, (n_learned, record) in learned.items()
        ]
    )
