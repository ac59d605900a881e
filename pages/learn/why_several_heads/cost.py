"""The cost of more heads at a fixed width: smaller heads with noisier scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from serving.cache import cached
from serving.runs import Run

if TYPE_CHECKING:
    from pages.learn.why_several_heads.experiment.head_size import ScoreNoise

N_DRAWS, SEED = 48, 0


def counts(run: Run) -> list[int]:
    """The possible numbers of heads for a model's width."""
    from pages.learn.why_several_heads.experiment.head_size import head_counts

    return head_counts(run.tensors.states.shape[-1])


@cached(key=lambda run, layer: (*run.key, layer))
def noise(run: Run, layer: int) -> tuple[ScoreNoise, ...]:
    """Measure the score noise of a layer's input, for every possible number of heads.

    Raises: ValueError for a text of one token.
    """
    from pages.learn.why_several_heads.experiment.head_size import score_noise

    if len(run.tokens) < 2:
        raise ValueError("A score needs two tokens, but this text has only one. Type a longer one.")
    return score_noise(run.tensors.states[layer], counts(run), n_draws=N_DRAWS, seed=SEED)


def by_count(noises: tuple[ScoreNoise, ...]) -> pd.DataFrame:
    """One row per number of heads: `heads`, `size`, `measured`, `low`, `high`, `theory`."""
    return pd.DataFrame(
        [
            {
                "heads": noise.n_heads,
                "size": noise.head_size,
                "measured": noise.measured,
                "low": noise.low,
                "high": noise.high,
                "theory": noise.theory,
            }
            for noise in noises
        ]
    )


def prices(run: Run, noises: tuple[ScoreNoise, ...], n_heads: int) -> pd.DataFrame:
    """Compare one head with `n_heads` heads."""
    from pages.learn.why_several_heads.experiment.head_size import n_parameters

    width, n_tokens = run.tensors.states.shape[-1], len(run.tokens)
    of_count = {noise.n_heads: noise for noise in noises}
    columns = {}
    for count in (1, n_heads):
        noise = of_count[count]
        columns["1 head" if count == 1 else f"{count} heads"] = [
            f"{noise.head_size}",
            f"{n_parameters(width, count):,}",
            f"{count * n_tokens**2:,}",
            f"{noise.measured:.3f}",
            f"{noise.theory:.3f}",
        ]
    rows = [
        "head size, D = C / H",
        "parameters of W_q, W_k, W_v, W_O",
        f"attention weights, H × {n_tokens}²",
        "score noise, measured",
        "score noise, theory",
    ]
    return pd.DataFrame({"": rows, **columns})


def trade(noises: tuple[ScoreNoise, ...], n_heads: int) -> str:
    """Say what `n_heads` heads gain and lose, compared to one head."""
    of_count = {noise.n_heads: noise.measured for noise in noises}
    ratio = of_count[n_heads] / of_count[1]
    if n_heads == 1:
        return "A single head has one map, and its scores use the whole width."
    return (
        f"{n_heads} heads give you {n_heads} maps for the same number of parameters, but their "
        f"scores are {ratio:.1f} times as noisy (theory: √{n_heads} = {n_heads**0.5:.1f})."
    )
