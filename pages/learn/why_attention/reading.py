"""What a linear reader gets back from the last state of a GRU."""

from __future__ import annotations

import numpy as np

from serving.cache import BoundedCache

# Positions of a sequence, sequences drawn.
READ_TOKENS, READ_SEQUENCES = 16, 3000
_readings: BoundedCache[np.ndarray] = BoundedCache(64, lambda _: 1)


def reading(width: int, state: int, hold: float, seed: int) -> np.ndarray:
    """How much of each of `READ_TOKENS` tokens a linear reader finds in the last state: (T,)."""

    def make() -> np.ndarray:
        from attention_core.experiments.learn.why_attention import encoder, recoverable

        gru = encoder(width, state, seed, hold=hold)
        return recoverable(gru, READ_TOKENS, n_sequences=READ_SEQUENCES, seed=seed).numpy()

    return _readings.get((width, state, hold, seed), make)


def recovered(found: np.ndarray, width: int) -> float:
    """Dimensions of the sentence that the reader gets back, of READ_TOKENS * width."""
    return float(found.clip(min=0.0).sum() * width)
