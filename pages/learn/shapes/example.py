"""The eleven steps on random numbers of the chosen sizes."""

from __future__ import annotations

from collections.abc import Sequence

from pages.learn.shapes.walk import ShapeWalk
from serving.limits import MAX_SMALL_TOKENS, OverLimit
from ui.text.formatting import join_or

MAX_HEADS, MAX_WIDTH = 8, 16


def words(text: str) -> tuple[str, ...]:
    """Split a sentence at spaces.

    Raises: OverLimit if there are more words than the picture can show; ValueError without a word.
    """
    split_words = tuple(text.split())
    if len(split_words) > MAX_SMALL_TOKENS:
        raise OverLimit(
            f"The sentence has {len(split_words)} words, but this page can show at most "
            f"{MAX_SMALL_TOKENS}. Shorten it: your text is still in the box."
        )
    if not split_words:
        raise ValueError("The sentence is empty. Type at least one word.")
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
    """Compute the steps on random embeddings and random matrices, both drawn with `seed`.

    Raises: ValueError for sizes or sentences that don't fit together.
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
        raise ValueError(f"{error}. {size_suggestion(d_out, n_heads)}") from error
    # dropout acts only in training mode
    try:
        with torch.no_grad(), seeded(dropout_seed):
            steps = multi_head_steps(attention.train(dropout > 0.0), x)
    except ValueError as error:
        raise ValueError(
            f"{error}. Increase the context length or shorten the sentence."
        ) from error
    return ShapeWalk(steps, labels)


def size_suggestion(d_out: int, n_heads: int) -> str:
    """Suggest sizes that fit if the heads don't divide d_out; empty if they do."""
    if d_out % n_heads == 0:
        return ""
    heads = [n for n in range(1, MAX_HEADS + 1) if d_out % n == 0]
    widths = [n for n in range(n_heads, MAX_WIDTH + 1, n_heads)]
    return (
        f"For d_out {d_out}, choose {join_or(heads, 'head')}. For {n_heads} heads, choose a d_out "
        f"of {join_or(widths)}."
    )
