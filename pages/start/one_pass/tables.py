"""The picture of one pass as tables, for screen readers and exact numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from serving.flow import flow_of, why_next
from serving.one_pass import TEMPERATURES, OnePass

REST = ("token embedding", "attention biases", "bias of the last norm", "output bias")
ROWS_OF_NEXT = 10


def edges(passed: OnePass, token: int) -> pd.DataFrame:
    """What a token takes from others, one row per edge, strongest first."""
    flow, labels = flow_of(passed.run), passed.run.tokens.labels
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


def shares(passed: OnePass) -> pd.DataFrame:
    """What each part adds to the top next token's logit, largest first."""
    why = why_next(passed)
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


def next_tokens(passed: OnePass) -> pd.DataFrame | None:
    """The most likely next tokens at temperature 1, or None for an encoder."""
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
