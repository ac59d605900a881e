"""How much of a sequence a linear reader recovers from a GRU's last state."""

from __future__ import annotations

import numpy as np
import pandas as pd

from serving.cache import cached

# tokens per sequence, and number of sequences
READOUT_TOKENS, READOUT_SEQUENCES = 16, 3000


@cached(key=lambda width, state, hold, seed: (width, state, hold, seed))
def readout(width: int, state: int, hold: float, seed: int) -> np.ndarray:
    """The fraction of each of `READOUT_TOKENS` tokens that a reader recovers: (T,)."""
    from pages.learn.why_attention.experiment import encoder, recoverable

    gru = encoder(width, state, seed, hold=hold)
    parts: np.ndarray = recoverable(
        gru, READOUT_TOKENS, n_sequences=READOUT_SEQUENCES, seed=seed
    ).numpy()
    return parts


def by_position(parts: np.ndarray) -> pd.DataFrame:
    """The chart's rows: the `position` of a token and the `part` that is recovered."""
    return pd.DataFrame({"position": range(len(parts)), "part": parts.astype(float)})


def recovered_dimensions(parts: np.ndarray, width: int) -> float:
    """The number of recovered dimensions, out of READ_TOKENS * width."""
    return float(parts.clip(min=0.0).sum() * width)
