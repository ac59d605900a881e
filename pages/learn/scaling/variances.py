"""Size of q·k and its softmax under four divisors, by d_k."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from serving.cache import cached
from ui.text.formatting import format_number

if TYPE_CHECKING:
    from pages.learn.scaling.experiment import ScaledScores

D_KS = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 256, 512, 1024]
N_DRAWS, N_TOKENS = 100, 32
# The course's experiment: d_k, draws, tokens per draw.
COURSE = (64, 1000, 10)

ENTROPY, LARGEST = "entropy of a row", "largest weight of a row"
GRADIENT, MEDIAN = "gradient of the softmax, mean row", "gradient of the softmax, median row"
REACHES = "gradient that reaches q·k, median row"
MEASURES = [LARGEST, ENTROPY, GRADIENT, MEDIAN, REACHES]


@cached(key=lambda seed: seed)
def sweep(seed: int) -> dict[str, list[ScaledScores]]:
    """Measure all divisors at every d_k; the result is cached for all visitors."""
    from pages.learn.scaling.experiment import scaling_sweep

    return scaling_sweep(D_KS, n_draws=N_DRAWS, n_tokens=N_TOKENS, seed=seed)


@cached(key=lambda seed: seed)
def course(seed: int) -> dict[str, ScaledScores]:
    """Run the course's experiment with a seed."""
    from pages.learn.scaling.experiment import scaling_sweep

    d_k, n_draws, n_tokens = COURSE
    results = scaling_sweep([d_k], n_draws=n_draws, n_tokens=n_tokens, seed=seed)
    return {name: sizes[0] for name, sizes in results.items()}


def at_d_k(seed: int, d_k: int) -> dict[str, ScaledScores]:
    """Results of the sweep at one d_k, by divisor."""
    return {name: sizes[D_KS.index(d_k)] for name, sizes in sweep(seed).items()}


def numbers(results: dict[str, ScaledScores]) -> pd.DataFrame:
    """One row per divisor: variance, theory and measures of the softmax."""
    return pd.DataFrame(
        [
            {
                "divided by": name,
                "variance": format_number(scores.variance, ".4g"),
                "spread": format_number(scores.spread, ".2g"),
                "theory": format_number(scores.theory, ".4g"),
                "entropy": f"{scores.entropy:.3f}",
                "largest weight": f"{scores.largest:.3f}",
                "gradient, mean": format_number(row_value(scores, GRADIENT), ".3g"),
                "gradient, median": format_number(row_value(scores, MEDIAN), ".3g"),
                "reaching q·k": format_number(row_value(scores, REACHES), ".3g"),
            }
            for name, scores in results.items()
        ]
    )


def gradient_sentence(seed: int, d_k: int) -> str:
    """Say which divisor gives the largest gradient, here and in a large head."""

    def best(size: int) -> str:
        reaching = {name: row_value(scores, REACHES) for name, scores in at_d_k(seed, size).items()}
        return max(reaching, key=lambda name: reaching[name])

    here, in_a_large_head = best(d_k), best(D_KS[-1])
    sentence = (
        f"With d_k = {d_k} the median row has the largest gradient at q·k if the scores are "
        f"divided by **{here}**"
    )
    if here == in_a_large_head:
        return f"{sentence}."
    return (
        f"{sentence}. With d_k = {D_KS[-1]:,} it's **{in_a_large_head}**, because in larger heads "
        "more rows are saturated. Move the slider to see it."
    )


def variances(seed: int) -> pd.DataFrame:
    """Data of the variance chart: `row_value`, `low`, `high` and `theory`."""
    return pd.DataFrame(
        [
            {
                "d_k": scores.d_k,
                "divided by": name,
                "measured": scores.variance,
                "low": max(scores.variance - scores.spread, scores.variance / 10),
                "high": scores.variance + scores.spread,
                "theory": scores.theory,
            }
            for name, sizes in sweep(seed).items()
            for scores in sizes
        ]
    )


def values(seed: int, measure: str) -> pd.DataFrame:
    """Data of the second chart: the `value` of a measure by d_k and divisor."""
    return pd.DataFrame(
        [
            {"d_k": scores.d_k, "divided by": name, "value": row_value(scores, measure)}
            for name, sizes in sweep(seed).items()
            for scores in sizes
        ]
    )


def full_table(seed: int) -> pd.DataFrame:
    """The whole sweep as a table with unrounded numbers, for the download."""
    return pd.DataFrame(
        [
            {
                "d_k": scores.d_k,
                "divided by": name,
                "variance": scores.variance,
                "spread": scores.spread,
                "theory": scores.theory,
                **{measure: row_value(scores, measure) for measure in MEASURES},
                "draws": scores.n_draws,
                "seed": seed,
            }
            for name, sizes in sweep(seed).items()
            for scores in sizes
        ]
    )


def row_value(scores: ScaledScores, measure: str) -> float:
    """One measure of the softmax; gradients are relative to a uniform row."""
    from pages.learn.scaling.experiment import uniform_jacobian_norm

    uniform = uniform_jacobian_norm(N_TOKENS)
    return {
        ENTROPY: scores.entropy,
        LARGEST: scores.largest,
        GRADIENT: scores.jacobian / uniform,
        MEDIAN: scores.jacobian_median / uniform,
        REACHES: scores.jacobian_median / uniform / scores.divisor,
    }[measure]
