"""The picture of one pass as tables: for who cannot see it, and for who wants its numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from serving.one_pass import TEMPERATURES, OnePass

LENGTHS = ("comes in", "attention adds", "feed-forward adds", "goes out")
ROWS_OF_NEXT = 10


def layers(passed: OnePass, token: int) -> pd.DataFrame:
    """What becomes of one token, a row a layer: the lengths of its vector and of what is added."""
    tensors = passed.run.tensors
    n_layers = len(tensors.attention_norms)
    table = pd.DataFrame(
        {
            "layer": np.arange(n_layers),
            "comes in": passed.state_norms[:-1, token],
            "attention adds": tensors.attention_norms[:, token].numpy(),
            "feed-forward adds": tensors.mlp_norms[:, token].numpy(),
            "goes out": passed.state_norms[1:, token],
        }
    )
    if passed.guesses:
        table["the last token would be followed by"] = list(passed.guesses[1:])
        table["probability"] = passed.guess_probabilities[1:]
    return table


def next_tokens(passed: OnePass) -> pd.DataFrame | None:
    """The likeliest next tokens at temperature 1; None for a model that predicts none."""
    said = passed.next_token
    if said is None:
        return None
    logits = said.logits[:ROWS_OF_NEXT]
    log_sum = said.log_sums[TEMPERATURES.index(1.0)]
    return pd.DataFrame(
        {
            "next token": list(said.tokens[:ROWS_OF_NEXT]),
            "logit": logits,
            "probability": np.exp(logits - log_sum),
        }
    )
