"""Timings of a loop over the words, PyTorch's GRU, and attention."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from serving import measure
from ui.text.formatting import format_number

if TYPE_CHECKING:
    from attention_core.costs.stopwatch import Samples

FEW, MANY = (8, 32, 128, 512), (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
TIME_WIDTH, TIME_SEED, RATIO_AT = 64, 0, 512


@dataclass(frozen=True)
class RunTimes:
    """Seconds of every run at every length: `seconds[name][length]`."""

    seconds: dict[str, dict[int, Samples]]
    ratio: Samples  # time of the loop divided by that of attention, at `RATIO_AT` tokens
    lengths: tuple[int, ...]
    repeats: int
    threads: int

    @property
    def table(self) -> pd.DataFrame:
        """One row per length: sequential steps, attention scores, milliseconds."""
        return pd.DataFrame(
            [
                {
                    "tokens": length,
                    "sequential steps": length,
                    "attention scores": length**2,
                    **{f"{n}, ms": f"{_ms(all_[length])}" for n, all_ in self.seconds.items()},
                }
                for length in self.lengths
            ]
        )

    @property
    def milliseconds(self) -> pd.DataFrame:
        """One row per run and length: `run`, `tokens`, `ms` (the median), `low`, `high`."""
        return pd.DataFrame(
            [
                {
                    "run": run,
                    "tokens": length,
                    "ms": samples.median * 1e3,
                    "low": samples.low * 1e3,
                    "high": samples.high * 1e3,
                }
                for run, by_length in self.seconds.items()
                for length, samples in by_length.items()
            ]
        )


def times(round_: int) -> measure.TimedResult[RunTimes]:
    """Time all three at all lengths, or return the cached result; `FIRST` uses short lengths."""

    def make() -> RunTimes:
        import torch

        from attention_core.costs.stopwatch import Samples, interleave, paired_ratio, seconds_of
        from pages.learn.why_attention.experiment import sequence_runs

        lengths, repeats = (FEW, 5) if round_ == measure.FIRST else (MANY, 7)
        seconds: dict[str, dict[int, Samples]] = {}
        for length in lengths:
            runs = sequence_runs(length, TIME_WIDTH, TIME_SEED)
            timed = {name: partial(seconds_of, run) for name, run in runs.items()}
            with torch.inference_mode():
                measurements = interleave(timed, repeats=repeats)
            for name, values in measurements.items():
                seconds.setdefault(name, {})[length] = Samples(tuple(values))
            if length == RATIO_AT:
                loop, _, attention = measurements.values()
                ratio = paired_ratio(loop, attention)
        return RunTimes(seconds, ratio, lengths, repeats, torch.get_num_threads())

    return measure.cached_measurement(("why_attention",), round_, make)


def _ms(samples: Samples) -> str:
    median, low, high = (
        format_number(seconds * 1e3, ".3g")
        for seconds in (samples.median, samples.low, samples.high)
    )
    return f"{median} ({low} to {high})"
