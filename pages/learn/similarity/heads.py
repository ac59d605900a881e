"""A head on the visitor's text, compared with attention without learned matrices."""

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
from ui.text.formatting import percent
from ui.text.isolated import isolated
from ui.widgets.head_choice import HeadChoice

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core import AttentionRecord, Transformer
    from pages.learn.similarity.experiment.scores import HeadMatrices, ScoreVariants
    from pages.learn.similarity.experiment.teaching import Lesson
    from serving.runs import Run

# Four ways to compute scores, by what they multiply.
PLAIN, SCALED, SAME, HEAD = "x·xᵀ", "x·xᵀ / √C", "k·kᵀ", "q·kᵀ"


@dataclass(frozen=True)
class HeadOnText:
    """One head on a text: its input, its matrices, and the four ways to compute its weights.

    layer_scores: scaled scores of all heads of its layer before the mask, (H, T, T). layer_weights:
    their weights, (H, T, T).
    """

    title: str
    run: Run
    core: Transformer
    variants: ScoreVariants
    matrices: HeadMatrices
    layer_scores: Tensor
    layer_weights: Tensor
    layer: int
    number: int

    @property
    def name(self) -> str:
        """The head's layer and index, such as "L3H1"."""
        return str(HeadId(self.layer, self.number))

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per token."""
        return self.run.tokens.labels


def head(choice: HeadChoice, text: str) -> HeadOnText:
    """Run the chosen head on a text.

    Raises: OverLimit for a text that is too long, ValueError for one without a token, and
    `models.LOAD_ERRORS`.
    """
    import torch

    from pages.learn.similarity.experiment.scores import head_matrices, score_variants

    run = runs.run(choice.entry.spec.name, text, MAX_LESSON_TOKENS, PURPOSE)
    core = run.pretrained.core
    recorded = run.layer(choice.layer)
    with torch.inference_mode():
        weighed = score_variants(core, recorded, choice.head)
    record = recorded.attention
    return HeadOnText(
        title=choice.title,
        run=run,
        core=core,
        variants=weighed,
        matrices=head_matrices(core, choice.layer, choice.head),
        layer_scores=(record.scores * record.scale)[0].float().cpu(),
        layer_weights=record.weights[0].float().cpu(),
        layer=choice.layer,
        number=choice.head,
    )


def reasons(subject: HeadOnText, word: int) -> pd.DataFrame:
    """Tabulate the course's five reasons against x·xᵀ, with measurements of both sides."""
    from pages.learn.similarity.experiment.scores import head_difference

    ways, matrices = subject.variants, subject.matrices
    n_tokens, width = ways.x.shape
    n_heads, d_head = len(subject.layer_weights), matrices.query.shape[1]
    plain, real = (_behaviour(record) for record in (ways.plain, ways.head))
    differ = head_difference(subject.layer_weights)
    copies = head_difference(ways.plain.weights.expand(n_heads, -1, -1))
    vectors, matrix = _lesson_sentences(subject, word)
    by_name = nearest(subject)
    label = isolated(subject.labels[word])
    as_x, as_query, as_key, as_value = (isolated(name) for name in by_name.iloc[word, 1:])
    agree = int((by_name.iloc[:, 2:].nunique(axis=1) == 1).sum())
    rows = [
        (
            "The same vector has to be query, key and value.",
            f"“{label}” is closest to “{as_x}” in all three roles (by the cosine of their x in "
            f"layer {subject.layer}).",
            f"“{label}” is closest to “{as_query}” as a query, to “{as_key}” as a key and to "
            f"“{as_value}” as a value. All three are the same for {agree} of {n_tokens} tokens.",
        ),
        (
            "Scores are the same in both directions, and words favor themselves.",
            plain,
            real,
        ),
        (
            "All heads compute the same weights.",
            f"{n_heads} heads get the same matrix, so they differ by {copies:.0%}.",
            f"On average, two of the {n_heads} heads in layer {subject.layer} put {differ:.0%} of "
            "their weight on different tokens.",
        ),
        ("Only the word vectors can be trained.", vectors, matrix),
        (
            "You can't choose the vector size.",
            f"{width} multiplications per score, because x has {width} numbers.",
            f"{d_head} multiplications per score, because W_q and W_k shorten the vectors.",
        ),
    ]
    head = f"{subject.title} (layer {subject.layer}, head {subject.number})"
    return pd.DataFrame(rows, columns=["five reasons against x·xᵀ", "softmax(x·xᵀ)", head])


def _behaviour(record: AttentionRecord) -> str:
    from pages.learn.similarity.experiment.scores import asymmetry, own_first, own_weight

    return (
        f"Asymmetry {asymmetry(record.scores):.3f}. On average, a token gives "
        f"{percent(own_weight(record.weights))} of its attention to itself. That's its largest "
        f"weight in {own_first(record.weights)} of {len(record.weights)} rows."
    )


def _lesson_sentences(subject: HeadOnText, word: int) -> tuple[str, str]:
    """Describe what training must change to redirect attention, without and with matrices."""
    from pages.learn.similarity.experiment.teaching import (
        largest_change_of_cosines,
        n_moved,
    )

    count = f"W_q, W_k and W_v have {subject.matrices.n_numbers:,} parameters."
    key = least_seen(subject, word)
    if key is None:
        return "0 parameters.", count
    vectors, matrix = teach_both(subject, word, key)
    x, pair = subject.variants.x, (subject.labels[word], subject.labels[key])
    return (
        f"Training moves {n_moved(x, vectors.result)} of {len(x)} word vectors "
        f"{_progress_text(vectors, *pair)}. That also changes everything else that reads these "
        "vectors: "
        "the cosine of two words changes by up to "
        f"{largest_change_of_cosines(x, vectors.result):.3f}.",
        f"Training changes only W_q, by {matrix.share:.1%}, {_progress_text(matrix, *pair)}. "
        f"{count}",
    )


def _progress_text(lesson: Lesson, query: str, key: str) -> str:
    """Describe the weight that gradient steps reached."""
    from pages.learn.similarity.experiment.teaching import GOAL, MOST_STEPS

    gives = f"“{isolated(query)}” gives “{isolated(key)}”"
    if lesson.after >= GOAL:
        return f"until {gives} {percent(GOAL)} of its attention, up from {percent(lesson.before)}"
    return f"in {MOST_STEPS} steps, but {gives} only {percent(lesson.after)} of its attention"


def least_seen(subject: HeadOnText, word: int) -> int | None:
    """The visible token with the smallest weight in a token's row; None if there is no other."""
    row = subject.variants.head.weights[word].cpu().numpy().copy()
    row[word] = np.inf
    if subject.run.causal:
        row[word:] = np.inf
    key = int(row.argmin())
    return key if np.isfinite(row[key]) else None


@cached(key=lambda subject, word, key: (subject.run.key, subject.layer, subject.number, word, key))
def teach_both(subject: HeadOnText, word: int, key: int) -> tuple[Lesson, Lesson]:
    """Train until a new key gets half the weight: by moving the vectors, and by moving W_q."""
    from dataclasses import replace

    from pages.learn.similarity.experiment.teaching import (
        teach_query_matrix,
        teach_vectors,
    )

    # inference tensors can't have gradients, but their copies can
    ways, record = subject.variants, subject.variants.head
    record = replace(record, q=record.q.clone(), k=record.k.clone())
    ways = replace(ways, x=ways.x.clone(), head=record)
    return (
        teach_vectors(ways.x, word, key, causal=subject.run.causal),
        teach_query_matrix(subject.core.config, ways, subject.matrices, word, key),
    )


def nearest(subject: HeadOnText) -> pd.DataFrame:
    """List each token's nearest other token, by cosine, as x, query, key and value."""
    from pages.learn.similarity.experiment.word_vectors import nearest_other

    labels = subject.labels
    columns = {
        f"nearest as {name}": [labels[place] for place in nearest_other(vectors).tolist()]
        for name, vectors in zip(
            ("x", "query", "key", "value"),
            (subject.variants.x, *subject.variants.projected),
            strict=True,
        )
    }
    return pd.DataFrame({"token": labels, **columns})


def value_sentence(subject: HeadOnText) -> str:
    """Describe what a token receives with and without W_v."""
    from pages.learn.similarity.experiment.word_vectors import mean_cosine

    ways, by_name = subject.variants, nearest(subject)
    same = int((by_name["nearest as x"] == by_name["nearest as value"]).sum())
    return (
        "Without W_v, attention averages x itself, so a token mostly gets its own vector back: "
        "softmax(x·xᵀ)·x has a mean cosine of "
        f"{mean_cosine(ways.plain.context, ways.x):.3f} with x. "
        f"{subject.name} averages x·W_v instead, {ways.head.v.shape[1]} numbers per token. For "
        f"{same} of {len(by_name)} tokens, the nearest token is the same in x·W_v as in x."
    )


def measures(subject: HeadOnText) -> pd.DataFrame:
    """Tabulate the four scores: learned parameters, asymmetry, and attention to oneself."""
    from pages.learn.similarity.experiment.scores import asymmetry, own_first, own_weight

    matrices, ways = subject.matrices, subject.variants
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
