"""What a head costs in a model's width: its size, its parameters, the noise of its scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from serving.cache import cached
from serving.runs import Run

if TYPE_CHECKING:
    from pages.learn.why_several_heads.experiment.head_size import ScoreNoise

N_DRAWS, SEED = 48, 0


def counts(run: Run) -> list[int]:
    """The numbers of heads that the width of a model can be split into."""
    from pages.learn.why_several_heads.experiment.head_size import head_counts

    return head_counts(run.tensors.states.shape[-1])


@cached(key=lambda run, layer: (*run.key, layer))
def noise(run: Run, layer: int) -> tuple[ScoreNoise, ...]:
    """How noisy the scores of the tokens are that enter a layer, for every number of heads.

    Raises: ValueError for a text of one token.
    """
    from pages.learn.why_several_heads.experiment.head_size import score_noise

    if len(run.tokens) < 2:
        raise ValueError("A score compares two tokens, and this text has only one. Type another.")
    return score_noise(run.tensors.states[layer], counts(run), n_draws=N_DRAWS, seed=SEED)


def by_count(noises: tuple[ScoreNoise, ...]) -> pd.DataFrame:
    """One row a number of heads: `heads`, `size`, `measured`, `low`, `high`, `theory`."""
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
    """One head beside `n_heads` heads: what stays the same, and what does not."""
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
        "numbers of a query, D = C / H",
        "parameters: W_q, W_k, W_v, W_O",
        f"attention weights, H × {n_tokens}²",
        "noise of a score, measured",
        "noise of a score, theory",
    ]
    return pd.DataFrame({"": rows, **columns})


def trade(noises: tuple[ScoreNoise, ...], n_heads: int) -> str:
    """A sentence about what `n_heads` heads gain and lose beside one head."""
    of_count = {noise.n_heads: noise.measured for noise in noises}
    ratio = of_count[n_heads] / of_count[1]
    if n_heads == 1:
        return "One head makes one map, and has the whole width for its scores."
    return (
        f"{n_heads} heads make {n_heads} maps with the same number of parameters, and their scores "
        f"are {ratio:.1f} times as noisy (theory: √{n_heads} = {n_heads**0.5:.1f})."
    )
