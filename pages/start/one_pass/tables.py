"""The picture of one pass as tables, for screen readers and exact numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from serving.flow import compute_flow, next_word_shares
from serving.one_pass import TEMPERATURES, OnePass

REST = ("token embedding", "attention biases", "bias of the last norm", "output bias")
MAX_NEXT_ROWS = 10


def edges(one_pass: OnePass, token: int) -> pd.DataFrame:
    """What a token receives from other tokens, one row per edge, strongest first."""
    flow, labels = compute_flow(one_pass.run), one_pass.run.tokens.labels
    own = flow.edges[(flow.edges[:, 1] == token) & (flow.edges[:, 2] != token)]
    own = own[np.argsort(-own[:, 3], kind="stable")]
    return pd.DataFrame(
        {
            "from": [labels[int(key)] for key in own[:, 2]],
            "layer": own[:, 0].astype(int),
            "share of the update": own[:, 3],
            "strongest head": [f"L{int(row[0])}H{int(row[4])}" for row in own],
            "that head's share": own[:, 5],
        }
    )


def shares(one_pass: OnePass) -> pd.DataFrame:
    """What each part adds to the top next token's logit, largest first."""
    why = next_word_shares(one_pass)
    if why is None:
        return pd.DataFrame()
    heads = {
        f"L{layer}H{head}": share
        for layer, of_layer in enumerate(why.heads[0])
        for head, share in enumerate(of_layer)
    }
    networks = {f"feed-forward, layer {layer}": share for layer, share in enumerate(why.mlp[0])}
    rest = dict(zip(REST, why.rest[0], strict=True))
    parts = sorted((heads | networks | rest).items(), key=lambda part: -abs(part[1]))
    return pd.DataFrame(parts, columns=["part", "share of the logit"])


def next_tokens(one_pass: OnePass) -> pd.DataFrame | None:
    """The most likely next tokens at temperature 1, or None for an encoder."""
    prediction = one_pass.next_token
    if prediction is None:
        return None
    logits = prediction.logits[:MAX_NEXT_ROWS]
    log_sum = prediction.log_sums[TEMPERATURES.index(1.0)]
    return pd.DataFrame(
        {
            "next token": list(prediction.tokens[:MAX_NEXT_ROWS]),
            "logit": logits,
            "probability": np.exp(logits - log_sum),
        }
    )
