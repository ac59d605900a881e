"""Downloads of the page "Word pairs": all numbers of the search, and its code."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pages.compare.word_pairs.search import Search, units
from serving.runs import Run
from ui.export import downloads

SNIPPET = """\
import torch
import pretrained
from pages.compare.word_pairs.experiment import unit_weights

model = pretrained.load({model!a}, device="cpu")
tokens = model.tokenizer.encode({text!a})
with torch.inference_mode():
    records = model.core(torch.tensor([tokens.ids]), record=True).records
weights = torch.cat([record.weights for record in records])  # (layers, heads, T, S)
query, a, b = {query!r}, {key!r}, {other!r}  # the tokens of three words
taken = unit_weights(weights, query, [a, b])  # (layers, heads, 2)
layer, head = divmod(int(taken[..., 0].argmax()), taken.shape[1])
print(layer, head, float(taken[layer, head, 0]))  # the head with the largest weight on A
print(float(taken[..., 1].max()))  # the largest weight on B
"""


def show(run: Run, result: Search, table: pd.DataFrame) -> None:
    """Show the page's files, code and link. table: the page's table of all heads."""
    stem = f"{run.model}_word_pair"
    downloads.panel(
        "word_pairs",
        downloads.csv("All heads", lambda: table, stem),
        downloads.npz("All numbers", partial(arrays, run, result), stem),
        snippet=snippet(run, result),
        note="The NPZ file contains each head's weights on A and B, its contributions and the rank "
        "of A among words (layers × heads), the largest weight of each other pair, the weights of "
        "all tokens (float32), and the word each token belongs to. To reproduce the rank, add up "
        "the weights of each word first: it ranks words, not tokens.",
    )


def arrays(run: Run, result: Search) -> dict[str, Any]:
    """The results under the names of `Search`, and the weights that were searched."""
    words = units(run.tokens)
    word_of_token = np.empty(len(run.tokens), np.int64)
    for number, word in enumerate(words):
        word_of_token[list(word.tokens)] = number
    return {
        "weights": run.weights,
        "weights_on_a": result.weights,
        "weights_on_b": result.other_weights,
        "contributions_of_a": result.contributions,
        "rank_of_a_among_words": result.rank,
        "other_pairs": result.other_pairs,
        "query_tokens": np.array(result.query.tokens),
        "a_tokens": np.array(result.key.tokens),
        "b_tokens": np.array(result.other.tokens),
        "tokens": np.array(run.tokens.labels),
        "words": np.array([word.label for word in words]),
        "word_of_token": word_of_token,
    }


def snippet(run: Run, result: Search) -> str:
    """Python code that searches for the same words and prints the largest weights."""
    return SNIPPET.format(
        model=run.model,
        text=run.tokens.text,
        query=result.query.tokens,
        key=result.key.tokens,
        other=result.other.tokens,
    )
