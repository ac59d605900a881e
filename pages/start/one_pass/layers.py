"""How one token changes in every layer, from the tensors of a recorded pass."""

from __future__ import annotations

import numpy as np
import pandas as pd

from serving import compute, token_text
from serving.cache import cached
from serving.one_pass import OnePass

ATTENTION, FEED_FORWARD = "attention adds", "feed-forward adds"


def added(one_pass: OnePass, token: int) -> pd.DataFrame:
    """Lengths of the vectors added by each layer: columns `layer`, `part`, `length`."""
    tensors = one_pass.run.tensors
    lengths = {
        ATTENTION: tensors.attention_norms[:, token].numpy(),
        FEED_FORWARD: tensors.mlp_norms[:, token].numpy(),
    }
    return pd.DataFrame(
        [
            {"layer": layer, "part": part, "length": float(length)}
            for part, of_layers in lengths.items()
            for layer, length in enumerate(of_layers)
        ]
    )


def table(one_pass: OnePass, token: int) -> pd.DataFrame:
    """One row per layer: most attended token, what is added, and the logit lens."""
    tensors = one_pass.run.tensors
    keys, weights = most_read(one_pass, token)
    columns = {
        "layer": np.arange(len(keys)),
        "attends most to": [one_pass.run.tokens.labels[key] for key in keys],
        "weight": weights,
        ATTENTION: tensors.attention_norms[:, token].numpy(),
        FEED_FORWARD: tensors.mlp_norms[:, token].numpy(),
        "length after the layer": one_pass.state_norms[1:, token],
    }
    if one_pass.next_token is not None:
        guesses, probabilities = guesses_at(one_pass, token)
        columns |= {"predicted next token": guesses, "probability": probabilities}
    return pd.DataFrame(columns)


def most_read(one_pass: OnePass, token: int) -> tuple[list[int], np.ndarray]:
    """For each layer, the other token that gets most of this one's attention, and its weight (L,).

    Weights are averaged over the heads. The first token of a decoder and special tokens are skipped
    if possible, because heads with nothing to add attend to them (Xiao et al. 2023).
    """
    run = one_pass.run
    weights = run.weights[:, :, token].mean(axis=1)  # (L, H, S) -> (L, S)
    resting = np.array(run.tokens.special)
    resting[0] |= run.causal
    visible = np.arange(len(resting)) <= token if run.causal else np.full(len(resting), True)
    others = visible & ~resting & (np.arange(len(resting)) != token)
    allowed = others if others.any() else visible
    keys = np.where(allowed, weights, -1.0).argmax(axis=1)
    return keys.tolist(), weights[np.arange(len(keys)), keys]


@cached(key=lambda one_pass, token: (*one_pass.run.key, token))
def guesses_at(one_pass: OnePass, token: int) -> tuple[tuple[str, ...], np.ndarray]:
    """The most likely next token after each layer (logit lens), and its probability (L,).

    Raises: ValueError for a model without an output matrix.
    """
    import torch

    from attention_core.analysis.residual_stream import logit_lens

    model = one_pass.run.pretrained
    states = one_pass.run.tensors.states[1:, token].to(model.device, model.dtype)
    with compute.slot(), torch.inference_mode():
        likeliest, ids = logit_lens(model.core, states).float().softmax(dim=-1).max(dim=-1)
    return token_text.pieces(model.tokenizer, ids.tolist()), likeliest.cpu().numpy()
