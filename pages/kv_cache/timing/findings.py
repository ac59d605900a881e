"""What a measurement says, in tables and sentences: nothing here is known before it is measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from pages.kv_cache.timing.measured import LECTURE_TOKENS, TimingRun
from serving import models
from serving.timing.subjects import CACHED, CORE_CACHED, CORE_GRAPHS, CORE_INT8, UNROUNDED
from ui.text.number_text import written

if TYPE_CHECKING:
    from attention_core.costs.step_times import Coefficient
    from attention_core.costs.stopwatch import Samples

# the lecture's run: GPT-2 through transformers on the lecturer's machine, 100 new tokens
LECTURE_UNCACHED, LECTURE_CACHED = 6.77, 2.0


def sentences(run: TimingRun) -> list[str]:
    """What the run shows, one sentence or two for each pair, as Markdown; of numbers alone."""
    lines = []
    for cached, uncached in run.pairs:
        lines.append(f"**{who(cached)}**: {_verdict(run, cached, uncached)}")
    if {CORE_CACHED, CORE_INT8} <= set(run.series):
        lines.append(_int8(run))
    if {CORE_CACHED, CORE_GRAPHS} <= set(run.series):
        lines.append(_graphs(run))
    lines += [_parted(run, name, place) for name, place in run.parted.items()]
    if run.repeats == 1:
        lines.append("One repeat has no spread: small differences may be chance.")
    return lines


def _verdict(run: TimingRun, cached: str, uncached: str) -> str:
    ratio = run.ratio(uncached, cached, run.n_new)
    fast, slow = (run.series[name] for name in (cached, uncached))
    with_, without = (series.total(run.n_new).median for series in (fast, slow))
    times = f"median totals: {seconds(with_)} with the cache, {seconds(without)} without"
    if ratio.low > 1:
        verdict = f"for {run.n_new} new tokens the cache is **{ratio.median:.2f} times faster**"
    elif ratio.high < 1:
        verdict = (
            f"for {run.n_new} new tokens the cache **does not pay**: with it they took "
            f"{1 / ratio.median:.2f} times as long"
        )
    else:
        verdict = (
            f"for {run.n_new} new tokens the repeats **do not agree** on which is faster "
            f"({ratio.low:.2f} to {ratio.high:.2f} times)"
        )
    operations = slow.flops[-1] / fast.flops[-1]
    end = slow.fit.at(slow.n_keys[-1]) / fast.fit.at(fast.n_keys[-1])
    return (
        f"{verdict} ({times}). {_from(run.pays_from(cached, uncached), run.n_new)} "
        f"The last step without it did {written(operations, '.3g')} times the operations and, by "
        f"the fits, took {written(end, '.2g')} times as long. Total time grew with the power "
        f"{fast.exponent:.2f} of the new tokens with the cache, {slow.exponent:.2f} without."
    )


def _int8(run: TimingRun) -> str:
    ratio = run.ratio(CORE_CACHED, CORE_INT8, run.n_new)
    return (
        f"**Weights in int8**: with them the core with its cache is {_times(ratio)} as fast. They "
        "are rounded, so that the text may be another one; *Generate* shows what that costs."
    )


def _graphs(run: TimingRun) -> str:
    ratio = run.ratio(CORE_CACHED, CORE_GRAPHS, run.n_new)
    return (
        "**Recorded steps in bfloat16**: with them the core with its cache is "
        f"{_times(ratio)} as fast. Half of the bytes are read, and the kernels of a step start "
        "with one call. Its numbers are rounded, so that the text may be another one."
    )


def _from(pays: int | None, n_new: int) -> str:
    if pays is None:
        return f"By each step's median it is not ahead at {n_new} tokens."
    if pays == 1:
        return (
            "By each step's median it is ahead at every length. (The first token is the same work "
            "for both, and a lead there is chance.)"
        )
    return f"By each step's median it stays ahead from {pays} tokens on."


def _parted(run: TimingRun, name: str, place: int) -> str:
    first = next(iter(run.series))
    return (
        f"**{name}** chose another token than **{first}** at step {place + 1}, where rounding "
        "decided: from there on their logits are not compared. What a step costs does not depend "
        "on it."
    )


def who(name: str) -> str:
    """Whose code a contender is."""
    return "The core" if name.startswith("core") else "Transformers"


def headline(run: TimingRun) -> dict[str, str]:
    """The few numbers that stand in large print."""
    cells = {
        f"Without ÷ with, {who(cached).lower()}": _times(run.ratio(uncached, cached, run.n_new))
        for cached, uncached in run.pairs
    }
    if len(set(run.series) & set(UNROUNDED)) > 1:
        cells["Same tokens"] = "no" if run.parted else "yes"
        difference = run.largest_difference
        if difference is not None:
            cells["Largest logit difference"] = (
                "not a number" if math.isnan(difference) else written(difference, ".1e")
            )
    return cells


def _times(ratio: Samples) -> str:
    """A ratio; its range where the repeats do not agree on which is faster."""
    if ratio.low < 1 < ratio.high:
        return f"{ratio.low:.2f}–{ratio.high:.2f} ×"
    return f"{ratio.median:.2f} ×"


def times(run: TimingRun) -> pd.DataFrame:
    """Each contender's totals: median and range over the repeats."""
    return pd.DataFrame(
        [
            {
                "contender": name,
                f"{run.n_new} tokens, s": f"{series.total(run.n_new):.3g}",
                "first token, ms": _milliseconds(series.first_token),
                "decode, tokens/s": f"{series.decode_rate:.4g}",
                "exponent of total": f"{series.exponent:.2f}",
                "GFLOPs": written(series.flops.sum() / 1e9, ",.4g"),
            }
            for name, series in run.series.items()
        ]
    )


def _milliseconds(samples: Samples) -> str:
    low, middle, high = (1e3 * value for value in (samples.low, samples.median, samples.high))
    return f"{written(middle, '.3g')} ({written(low, '.3g')}..{written(high, '.3g')})"


def ratios(run: TimingRun) -> pd.DataFrame:
    """Time without the cache over time with it, repeat by repeat, beside the lecture's."""
    lengths = sorted({n for n in (16, 32, 64, LECTURE_TOKENS, 256, run.n_new) if n <= run.n_new})
    rows = []
    for cached, uncached in run.pairs:
        rows.append(
            {"without ÷ with": who(cached)}
            | {f"{n} tokens": f"{run.ratio(uncached, cached, n):.2f}" for n in lengths}
        )
    if LECTURE_TOKENS in lengths:
        lecture = (
            f"{LECTURE_UNCACHED / LECTURE_CACHED:.1f} ({LECTURE_UNCACHED} s / {LECTURE_CACHED} s)"
        )
        rows.append(
            {"without ÷ with": "The lecture: GPT-2 124M on its machine"}
            | {f"{n} tokens": lecture if n == LECTURE_TOKENS else "–" for n in lengths}
        )
    return pd.DataFrame(rows)


def terms(run: TimingRun) -> pd.DataFrame:
    """The fitted terms of a decode step beside those of its operations, and the rates they make."""
    rows = []
    for name, series in run.series.items():
        fit = series.fit
        for power, (term, unit, scale, flops) in enumerate(
            (
                (fit.constant, "ms", 1e3, series.terms[0]),
                (fit.linear, "µs a token", 1e6, series.terms[1]),
                (fit.quadratic, "ns a token²", 1e9, series.terms[2]),
            )
        ):
            rows.append(
                {
                    "contender": name,
                    "term": ("constant", "× n", "× n²")[power],
                    "time": _plus_minus(term, scale) + f" {unit}",
                    "clear of 0": "yes" if term.is_clear else "no",
                    "FLOPs": f"{flops:,}",
                    "that makes": _rate(run, name, power, term, flops),
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
        size = written(run.weight_bytes(name) / 1e6, ",.4g")
        return f"{size} MB of weights: {written(rate / 1e9, '.3g')} GB/s"
    return f"{written(flops / term.value / 1e9, ',.3g')} GFLOP/s" if flops else "–"


def _plus_minus(term: Coefficient, scale: float) -> str:
    return f"{_short(term.value * scale)} ± {_short(term.error * scale)}"


def _short(value: float) -> str:
    """Three digits, without powers of ten for what a reader can take in."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    return written(value, f",.{min(places, 6)}f")


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    return f"{written(value, '.3g')} s" if value >= 0.9995 else f"{written(value * 1e3, '.3g')} ms"


def listing(runs: dict[int, TimingRun]) -> pd.DataFrame:
    """All runs of the visit, the newest first: settings, medians of totals and ratios."""
    rows = []
    for number, run in sorted(runs.items(), reverse=True):
        row: dict[str, object] = {
            "run": f"#{number}",
            "UTC": f"{run.ended:%H:%M:%S}",
            "model": models.title(run.question.model),
            "prompt": run.n_prompt,
            "new": run.n_new,
            "repeats": f"{run.repeats}{', stopped' * run.stopped}"
            f"{', interrupted' * bool(run.stood_still)}",
        }
        for name, series in run.series.items():
            row[f"{name}, s"] = written(series.total(run.n_new).median, ".3g")
        for cached, uncached in run.pairs:
            ratio = run.ratio(uncached, cached, run.n_new)
            row[f"÷ {who(cached).lower()}"] = "–" if run.stood_still else f"{ratio.median:.2f}"
        rows.append(row)
    return pd.DataFrame(rows).fillna("–")
