"""What a linear reader gets back from the last state of a GRU."""

from __future__ import annotations

import numpy as np

from serving.cache import kept
from serving.limits import SMALL_CACHE_BYTES

# Positions of a sequence, sequences drawn.
READ_TOKENS, READ_SEQUENCES = 16, 3000


@kept(SMALL_CACHE_BYTES, key=lambda width, state, hold, seed: (width, state, hold, seed))
def reading(width: int, state: int, hold: float, seed: int) -> np.ndarray:
    """How much of each of `READ_TOKENS` tokens a linear reader finds in the last state: (T,)."""
    from attention_core.experiments.learn.why_attention import encoder, recoverable

    gru = encoder(width, state, seed, hold=hold)
    found: np.ndarray = recoverable(gru, READ_TOKENS, n_sequences=READ_SEQUENCES, seed=seed).numpy()
    return found


def recovered(found: np.ndarray, width: int) -> float:
    """Dimensions of the sentence that the reader gets back, of READ_TOKENS * width."""
    return float(found.clip(min=0.0).sum() * width)
