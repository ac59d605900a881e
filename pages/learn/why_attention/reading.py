"""What a linear reader gets back from the last state of a GRU."""

from __future__ import annotations

import numpy as np
import pandas as pd

from serving.cache import cached

# Positions of a sequence, sequences drawn.
READ_TOKENS, READ_SEQUENCES = 16, 3000


@cached(key=lambda width, state, hold, seed: (width, state, hold, seed))
def reading(width: int, state: int, hold: float, seed: int) -> np.ndarray:
    """What part of each of `READ_TOKENS` tokens a reader finds in the last state: (T,)."""
    from pages.learn.why_attention.experiment import encoder, recoverable

    gru = encoder(width, state, seed, hold=hold)
    parts: np.ndarray = recoverable(gru, READ_TOKENS, n_sequences=READ_SEQUENCES, seed=seed).numpy()
    return parts


def by_position(parts: np.ndarray) -> pd.DataFrame:
    """The rows of the chart: `position` of a token and the `part` that is read back."""
    return pd.DataFrame({"position": range(len(parts)), "part": parts.astype(float)})


def recovered(parts: np.ndarray, width: int) -> float:
    """Dimensions of the sentence that the reader gets back, of READ_TOKENS * width."""
    return float(parts.clip(min=0.0).sum() * width)
