"""The steps on random numbers, with the sizes that a visitor chose."""

from __future__ import annotations

from collections.abc import Sequence

from pages.learn.shapes.walk import ShapeWalk
from serving.limits import MAX_SMALL_TOKENS, OverLimit
from ui.text.number_text import either

MOST_HEADS, MOST_WIDTH = 8, 16


def words(text: str) -> tuple[str, ...]:
    """A sentence split at blanks. OverLimit if there are more words than can be drawn."""
    split_words = tuple(text.split())
    if len(split_words) > MAX_SMALL_TOKENS:
        raise OverLimit(
            f"The sentence has {len(split_words)} words, {len(split_words) - MAX_SMALL_TOKENS} "
            f"over the limit of {MAX_SMALL_TOKENS}. Shorten it; what you typed is still in the box."
        )
    if not split_words:
        raise ValueError("There is no word in this sentence: type one or more.")
    return split_words


def walk(
    sentences: Sequence[str],
    *,
    d_in: int,
    d_out: int,
    n_heads: int,
    context_length: int,
    causal: bool,
    dropout: float,
    seed: int,
    dropout_seed: int,
) -> ShapeWalk:
    """The steps on random embeddings and random matrices, both drawn with `seed`.

    Raises: ValueError for sizes or sentences that do not fit each other.
    """
    import torch

    from attention_core.ladder import MultiHeadAttention
    from attention_core.seeding import seeded
    from pages.learn.shapes.experiment.steps import multi_head_steps, random_embeddings

    labels = tuple(words(sentence) for sentence in sentences)
    x = random_embeddings(labels, d_in, seed)
    try:
        with seeded(seed):
            attention = MultiHeadAttention(
                d_in, d_out, context_length, dropout, n_heads, causal=causal
            )
    except ValueError as error:
        raise ValueError(f"{error}. {instead(d_out, n_heads)}") from error
    # in training mode, or dropout would do nothing
    try:
        with torch.no_grad(), seeded(dropout_seed):
            steps = multi_head_steps(attention.train(dropout > 0.0), x)
    except ValueError as error:
        raise ValueError(
            f"{error}. Make the context longer or the sentence shorter; nothing you set is lost."
        ) from error
    return ShapeWalk(steps, labels)


def instead(d_out: int, n_heads: int) -> str:
    """A sentence with sizes that fit, if the heads do not divide d_out; empty if they do."""
    if d_out % n_heads == 0:
        return ""
    heads = [n for n in range(1, MOST_HEADS + 1) if d_out % n == 0]
    widths = [n for n in range(n_heads, MOST_WIDTH + 1, n_heads)]
    return (
        f"With d_out {d_out}, take {either(heads, 'head')}. With {n_heads} heads, take a d_out of "
        f"{either(widths)}."
    )
