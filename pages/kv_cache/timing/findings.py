"""Tables and sentences about a measurement, all computed from its times."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from pages.kv_cache.timing.timing_run import LECTURE_TOKENS, TimingRun
from serving import models
from serving.timing.timed_contenders import (
    CACHED,
    CORE_CACHED,
    CORE_GRAPHS,
    CORE_INT8,
    FULL_PRECISION,
)
from ui.text.formatting import format_number

if TYPE_CHECKING:
    from attention_core.costs.step_times import Coefficient
    from attention_core.costs.stopwatch import Samples

# seconds in the lecture: GPT-2 in transformers on the lecturer's machine, 100 new tokens
LECTURE_UNCACHED, LECTURE_CACHED = 6.77, 2.0


def sentences(run: TimingRun) -> list[str]:
    """Sentences about the run, a few for each pair, as Markdown without visitor input."""
    lines = []
    for cached, uncached in run.pairs:
        lines.append(f"**{owner(cached)}**: {_verdict(run, cached, uncached)}")
    if {CORE_CACHED, CORE_INT8} <= set(run.series):
        lines.append(_int8(run))
    if {CORE_CACHED, CORE_GRAPHS} <= set(run.series):
        lines.append(_graphs(run))
    lines += [_divergence_sentence(run, name, place) for name, place in run.parted.items()]
    if run.repeats == 1:
        lines.append("A single repeat shows no spread, so small differences may be chance.")
    return lines


def _verdict(run: TimingRun, cached: str, uncached: str) -> str:
    ratio = run.ratio(uncached, cached, run.n_new)
    fast, slow = (run.series[name] for name in (cached, uncached))
    with_, without = (series.total(run.n_new).median for series in (fast, slow))
    times = f"median totals: {seconds(with_)} with it, {seconds(without)} without"
    if ratio.low > 1:
        verdict = (
            f"generating {run.n_new} new tokens is **{ratio.median:.2f} times faster** with the "
            "cache"
        )
    elif ratio.high < 1:
        verdict = (
            f"for {run.n_new} new tokens, the cache **doesn't pay off**. Generation took "
            f"{1 / ratio.median:.2f} times as long with the cache"
        )
    else:
        verdict = (
            f"for {run.n_new} new tokens, the repeats **don't agree** on whether it's faster with "
            f"the cache ({ratio.low:.2f} to {ratio.high:.2f} times)"
        )
    operations = slow.flops[-1] / fast.flops[-1]
    end = slow.fit.predict(slow.n_keys[-1]) / fast.fit.predict(fast.n_keys[-1])
    return (
        f"{verdict} ({times}). {_break_even_sentence(run.break_even(cached, uncached), run.n_new)} "
        f"Without the cache, the last step did {format_number(operations, '.3g')} times the "
        f"operations and, by the fits, took {format_number(end, '.2g')} times as long."
    )


def _int8(run: TimingRun) -> str:
    ratio = run.ratio(CORE_CACHED, CORE_INT8, run.n_new)
    return (
        f"**int8 weights**: with them, the cached core is {_ratio_text(ratio)} as fast. Rounding "
        "the "
        "weights can change the text; *Generate* shows how accurate they are."
    )


def _graphs(run: TimingRun) -> str:
    ratio = run.ratio(CORE_CACHED, CORE_GRAPHS, run.n_new)
    return (
        "**Recorded steps in bfloat16**: with them, the cached core is "
        f"{_ratio_text(ratio)} as fast. A step reads half the bytes, and a single call launches "
        "all of "
        "its kernels. Rounding to 16 bits can change the text."
    )


def _break_even_sentence(pays: int | None, n_new: int) -> str:
    if pays is None:
        return f"By the median steps, the cache doesn't pay off within {n_new} tokens."
    if pays == 1:
        return (
            "By the median steps, the cache pays off at every length. (The first token is the "
            "same work for both, so a lead there is chance.)"
        )
    return f"By the median steps, the cache pays off from {pays} tokens."


def _divergence_sentence(run: TimingRun, name: str, place: int) -> str:
    first = next(iter(run.series))
    return (
        f"**{name}** chose a different token than **{first}** at step {place + 1} because of "
        "rounding. Their logits aren't compared after that. The time per step isn't affected."
    )


def owner(name: str) -> str:
    """The code base of a contender, as the subject of a sentence."""
    return "The core" if name.startswith("core") else "Transformers"


def headline(run: TimingRun) -> dict[str, str]:
    """The labels and values of the large metrics."""
    cells = {
        f"Speed-up of {owner(cached).lower()}": _ratio_text(run.ratio(uncached, cached, run.n_new))
        for cached, uncached in run.pairs
    }
    if len(set(run.series) & set(FULL_PRECISION)) > 1:
        cells["Same tokens"] = "no" if run.parted else "yes"
        difference = run.largest_difference
        if difference is not None:
            cells["Largest logit difference"] = (
                "not a number" if math.isnan(difference) else format_number(difference, ".1e")
            )
    return cells


def _ratio_text(ratio: Samples) -> str:
    """A ratio, or its range if the repeats disagree on which is faster."""
    if ratio.low < 1 < ratio.high:
        return f"{ratio.low:.2f}–{ratio.high:.2f} ×"
    return f"{ratio.median:.2f} ×"


def times(run: TimingRun) -> pd.DataFrame:
    """Totals of each contender, with median and range over the repeats."""
    return pd.DataFrame(
        [
            {
                "contender": name,
                f"{run.n_new} tokens, s": f"{series.total(run.n_new):.3g}",
                "first token, ms": _milliseconds(series.first_token),
                "decode, tokens/s": f"{series.decode_rate:.4g}",
                "growth exponent": f"{series.exponent:.2f}",
                "GFLOPs": format_number(series.flops.sum() / 1e9, ",.4g"),
            }
            for name, series in run.series.items()
        ]
    )


def _milliseconds(samples: Samples) -> str:
    low, middle, high = (1e3 * value for value in (samples.low, samples.median, samples.high))
    return (
        f"{format_number(middle, '.3g')} "
        f"({format_number(low, '.3g')}..{format_number(high, '.3g')})"
    )


def ratios(run: TimingRun) -> pd.DataFrame:
    """Time without the cache ÷ time with it at several lengths and in the lecture."""
    lengths = sorted({n for n in (16, 32, 64, LECTURE_TOKENS, 256, run.n_new) if n <= run.n_new})
    rows = []
    for cached, uncached in run.pairs:
        rows.append(
            {"without ÷ with": owner(cached)}
            | {f"{n} tokens": f"{run.ratio(uncached, cached, n):.2f}" for n in lengths}
        )
    if LECTURE_TOKENS in lengths:
        lecture = (
            f"{LECTURE_UNCACHED / LECTURE_CACHED:.1f} ({LECTURE_UNCACHED} s / {LECTURE_CACHED} s)"
        )
        rows.append(
            {"without ÷ with": "The lecture's GPT-2 124M"}
            | {f"{n} tokens": lecture if n == LECTURE_TOKENS else "–" for n in lengths}
        )
    return pd.DataFrame(rows)


def terms(run: TimingRun) -> pd.DataFrame:
    """The fitted terms of a decode step, its operations and the implied rates."""
    rows = []
    for name, series in run.series.items():
        fit = series.fit
        for power, (term, unit, scale, flops) in enumerate(
            (
                (fit.constant, "ms", 1e3, series.terms[0]),
                (fit.linear, "µs per token", 1e6, series.terms[1]),
                (fit.quadratic, "ns per token²", 1e9, series.terms[2]),
            )
        ):
            rows.append(
                {
                    "contender": name,
                    "term": ("constant", "× n", "× n²")[power],
                    "time": _plus_minus(term, scale) + f" {unit}",
                    "clearly nonzero": "yes" if term.is_clear else "no",
                    "FLOPs": f"{flops:,}",
                    "implied rate": _rate(run, name, power, term, flops),
                }
            )
    return pd.DataFrame(rows)


def _rate(run: TimingRun, name: str, power: int, term: Coefficient, flops: int) -> str:
    if not term.is_clear or term.value <= 0:
        return "–"
    if power == 0:
        rate = run.weight_rate(name) if name in CACHED else None
        if rate is None:
            return "–"
        size = format_number(run.weight_bytes(name) / 1e6, ",.4g")
        return f"{size} MB of weights: {format_number(rate / 1e9, '.3g')} GB/s"
    return f"{format_number(flops / term.value / 1e9, ',.3g')} GFLOP/s" if flops else "–"


def _plus_minus(term: Coefficient, scale: float) -> str:
    return f"{_three_digits(term.value * scale)} ± {_three_digits(term.error * scale)}"


def _three_digits(value: float) -> str:
    """Three significant digits, without a power of ten for everyday numbers."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    return format_number(value, f",.{min(places, 6)}f")


def seconds(value: float) -> str:
    """A time in seconds or milliseconds."""
    return (
        f"{format_number(value, '.3g')} s"
        if value >= 0.9995
        else f"{format_number(value * 1e3, '.3g')} ms"
    )


def run_list(runs: dict[int, TimingRun]) -> pd.DataFrame:
    """All runs of the visit, newest first: settings, median totals and ratios."""
    rows = []
    for number, run in sorted(runs.items(), reverse=True):
        row: dict[str, object] = {
            "run": f"#{number}",
            "UTC": f"{run.ended:%H:%M:%S}",
            "model": models.title(run.question.model),
            "prompt": run.n_prompt,
            "new": run.n_new,
            "repeats": f"{run.repeats}{', stopped' * run.stopped}"
            f"{', interrupted' * bool(run.stalled_seconds)}",
        }
        for name, series in run.series.items():
            row[f"{name}, s"] = format_number(series.total(run.n_new).median, ".3g")
        for cached, uncached in run.pairs:
            ratio = run.ratio(uncached, cached, run.n_new)
            row[f"÷ {owner(cached).lower()}"] = (
                "–" if run.stalled_seconds else f"{ratio.median:.2f}"
            )
        rows.append(row)
    return pd.DataFrame(rows).fillna("–")
