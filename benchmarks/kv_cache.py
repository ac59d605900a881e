"""Time saved by the KV cache, by length: `python -m benchmarks.kv_cache`.

The sizes of GPT-2 124M with random weights, float32 on the CPU, greedy, 512 new tokens after a
prompt of 5, batch 1. Four contenders take one step each in turn, and the first one changes from
step to step:

    core cached, core uncached                     this core, with and without a KVCache
    transformers cached, transformers uncached     GPT2LMHeadModel, with and without a DynamicCache

The first k steps of a generation are the same as generating k tokens, so one run measures all
lengths. All contenders must choose the same tokens; otherwise the benchmark fails with a message.
Three repeats take about 20 minutes on 2 cores, or half of that with `--core-only`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from transformers import GPT2Config

from attention_core import Step, Transformer, TransformerConfig, stream
from attention_core.costs.step_times import (
    WARM_UP,
    Coefficient,
    Fit,
    break_even,
    cumulative_seconds,
    fit_step_times,
    flops_terms,
    interleave_steps,
    total_exponent,
)
from attention_core.costs.stopwatch import Samples, paired_ratio
from benchmarks.decode import PROMPT_IDS
from benchmarks.timing import machine, table
from pretrained.reference_steps import reference_steps
from pretrained.untrained import random_gpt2
from pretrained.weights import core_from_reference

TARGETS = {100: 3.4, 512: 8.0}  # speedup from the cache at this number of new tokens
MOST_CACHED, LEAST_UNCACHED = 1.2, 1.5  # limits for the exponent of total time
FIRST_LENGTH = 32  # below this length, reading the weights dominates
_CORE, _TRANSFORMERS = "core", "transformers"
_CACHED, _UNCACHED = "cached", "uncached"

Contenders = dict[str, Callable[[], Iterator[Step]]]


@dataclass
class StepSeries:
    """The steps of one contender: seconds[repeat][step], and tokens of each repeat."""

    seconds: list[list[float]] = field(default_factory=list)
    token_ids: list[list[int]] = field(default_factory=list)

    def add(self, repeat: int, step: Step) -> None:
        """Store a step."""
        if repeat == len(self.seconds):
            self.seconds.append([])
            self.token_ids.append([])
        self.seconds[repeat].append(step.seconds)
        self.token_ids[repeat].append(step.token_id)

    @property
    def medians(self) -> list[float]:
        """The median of each step over the repeats."""
        return [statistics.median(times) for times in zip(*self.seconds, strict=True)]

    def total(self, length: int) -> Samples:
        """Seconds for `length` new tokens, including the prefill, one per repeat."""
        return Samples(tuple(cumulative_seconds(times)[length - 1] for times in self.seconds))


def contenders(
    core: Transformer,
    reference: object,
    prompt_ids: Sequence[int],
    max_new_tokens: int,
    *,
    with_transformers: bool,
) -> Contenders:
    """Functions that start a generation, by name."""

    def ours(cached: bool) -> Iterator[Step]:
        cache = core.new_cache(1, len(prompt_ids) + max_new_tokens - 1) if cached else None
        return stream(core, prompt_ids, max_new_tokens=max_new_tokens, cache=cache)

    def theirs(cached: bool) -> Iterator[Step]:
        return reference_steps(
            reference, core.config, prompt_ids, max_new_tokens=max_new_tokens, cached=cached
        )

    starts: Contenders = {
        f"{_CORE} {_CACHED}": lambda: ours(True),
        f"{_CORE} {_UNCACHED}": lambda: ours(False),
    }
    if with_transformers:
        starts[f"{_TRANSFORMERS} {_CACHED}"] = lambda: theirs(True)
        starts[f"{_TRANSFORMERS} {_UNCACHED}"] = lambda: theirs(False)
    return starts


def measure(starts: Contenders, repeats: int) -> dict[str, StepSeries]:
    """Run all steps. Raises: RuntimeError if the contenders choose different tokens."""
    series = {name: StepSeries() for name in starts}
    for turn in interleave_steps(starts, repeats=repeats):
        if turn.repeat != WARM_UP:
            series[turn.name].add(turn.repeat, turn.step)
            if turn.step.kind == "prefill":
                print(f"repeat {turn.repeat + 1} of {repeats}: {turn.name}", file=sys.stderr)
    check_tokens(series)
    return series


def check_tokens(series: Mapping[str, StepSeries]) -> None:
    """Raise RuntimeError unless every run of every contender chose the same tokens."""
    first_name, first = next(iter(series.items()))
    expected = first.token_ids[0]
    for name, one in series.items():
        for ids in one.token_ids:
            if ids != expected:
                pairs = zip(ids, expected, strict=False)
                at = next((i for i, (a, b) in enumerate(pairs) if a != b), "the end")
                raise RuntimeError(f"{name} and {first_name} differ starting at new token {at}")


def lengths_up_to(n_new: int) -> list[int]:
    """32, 64, 128, ... and `n_new`, evenly spaced on a log scale for the fit."""
    lengths = [FIRST_LENGTH * 2**i for i in range(20) if FIRST_LENGTH * 2**i < n_new]
    return [*(lengths or [max(1, n_new // 2)]), n_new]


def report(series: Mapping[str, StepSeries], config: TransformerConfig, n_prompt: int) -> str:
    """The tables, the ratios, and the exponents as text."""
    n_new = len(next(iter(series.values())).medians)
    lengths = lengths_up_to(n_new)
    shown = sorted({length for length in (*TARGETS, n_new) if length <= n_new})
    rows = [("", "first token, ms", *(f"{length} tokens, s" for length in shown), "exponent")]
    for name, one in series.items():
        times = [f"{one.total(length):.2f}" for length in shown]
        exponent = total_exponent(one.medians, lengths)
        first = Samples(tuple(1e3 * seconds[0] for seconds in one.seconds))
        rows.append((name, f"{first:.0f}", *times, f"{exponent:.2f}"))
    n_different = len(set(next(iter(series.values())).token_ids[0]))
    return "\n".join(
        [
            table(rows),
            f"exponent: total time grows with this power of the new tokens, fitted at {lengths}",
            f"all runs have the same token ids, {n_different} of them different",
            "",
            "One decode step with n tokens: time fitted to the medians, FLOPs counted",
            fits(series, config, n_prompt),
            "",
            *ratios(series, shown),
            *exponents(series, lengths),
        ]
    )


def fits(series: Mapping[str, StepSeries], config: TransformerConfig, n_prompt: int) -> str:
    """The fitted terms of a decode step, compared with those of its operations."""
    terms = ("constant, ms", "linear, us/n", "quadratic, ns/n^2")
    rows = [("", *terms, "MFLOP", "MFLOP/n", "kFLOP/n^2")]
    for name, one in series.items():
        decode = one.medians[1:]
        fit: Fit = fit_step_times([n_prompt + 1 + i for i in range(len(decode))], decode)
        constant, linear, quadratic = flops_terms(config, cached=name.endswith(f" {_CACHED}"))
        rows.append(
            (
                name,
                _term(fit.constant, 1e3),
                _term(fit.linear, 1e6),
                _term(fit.quadratic, 1e9),
                f"{constant / 1e6:.1f}",
                f"{linear / 1e6:.3f}",
                f"{quadratic / 1e3:.1f}",
            )
        )
    return table(rows)


def _term(term: Coefficient, scale: float) -> str:
    return f"{term.value * scale:.2f} +- {term.error * scale:.2f}"


def ratios(series: Mapping[str, StepSeries], lengths: Sequence[int]) -> list[str]:
    """Uncached over cached time per repeat, for the core and for transformers."""
    lines = []
    for kind in (_CORE, _TRANSFORMERS):
        if f"{kind} {_CACHED}" not in series:
            continue
        cached, uncached = series[f"{kind} {_CACHED}"], series[f"{kind} {_UNCACHED}"]
        for length in lengths:
            ratio = paired_ratio(uncached.total(length).values, cached.total(length).values)
            target = TARGETS.get(length) if kind == _CORE else None
            verdict = "" if target is None else f"; target {target}: {_reached(ratio, target)}"
            lines.append(
                f"{kind}, {length} new tokens: {ratio:.2f} times as fast with the cache{verdict}"
            )
        pays = break_even(cached.medians, uncached.medians)
        ahead = "never faster" if pays is None else f"faster from {pays} new tokens on"
        lines.append(f"{kind}: {ahead} with the cache")
    return lines


def exponents(series: Mapping[str, StepSeries], lengths: Sequence[int]) -> list[str]:
    """The exponents of total time, compared with what the operations predict."""
    cached, uncached = (
        total_exponent(series[f"{_CORE} {kind}"].medians, lengths) for kind in (_CACHED, _UNCACHED)
    )
    return [
        f"exponent with the cache {cached:.2f}, near 1 (at most {MOST_CACHED}): "
        f"{'reached' if cached <= MOST_CACHED else 'not reached'}",
        f"exponent without {uncached:.2f}, above {LEAST_UNCACHED}: "
        f"{'reached' if uncached > LEAST_UNCACHED else 'not reached'}",
    ]


def _reached(ratio: Samples, target: float) -> str:
    return "reached" if ratio.median >= target else "not reached"


def main(
    arguments: Sequence[str] | None = None,
    *,
    config: GPT2Config | None = None,
    prompt_ids: Sequence[int] = PROMPT_IDS,
) -> int:
    """Measure, print, and return the exit status: 1 if the tokens differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kv_cache")
    parser.add_argument("--repeats", type=int, default=3, help="repeats of each generation")
    parser.add_argument("--new-tokens", type=int, default=512)
    parser.add_argument("--core-only", action="store_true", help="skip transformers")
    options = parser.parse_args(arguments)
    if options.repeats < 1 or options.new_tokens < 7:
        parser.error("--repeats must be at least 1 and --new-tokens at least 7")
    config = config or GPT2Config()
    reference = random_gpt2(config)
    core = core_from_reference(reference)
    starts = contenders(
        core, reference, prompt_ids, options.new_tokens, with_transformers=not options.core_only
    )
    try:
        series = measure(starts, options.repeats)
    except RuntimeError as error:
        print(f"benchmarks.kv_cache: {error}", file=sys.stderr)
        return 1
    print(
        f"Greedy decoding, batch 1, {len(prompt_ids)} prompt + {options.new_tokens} new tokens, "
        f"{config.n_layer} layers of width {config.n_embd}, random weights"
    )
    print(f"{machine()}; median (min..max) of {options.repeats} repeats, alternating steps\n")
    print(report(series, core.config, len(prompt_ids)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
