"""Memory bandwidth of this machine, and how close decode steps come to it.

A decode step for one prompt does little more than read every weight once, so reading them sets the
minimum time. `benchmarks.decode` prints both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import torch

from attention_core import Step, Transformer
from attention_core.costs.stopwatch import Samples, interleave, paired_ratio, seconds_of
from attention_core.speed.products import linear

TARGET_OF_LIMIT = 0.8


@dataclass(frozen=True)
class ReadRates:
    """Bytes per second, one value per repeat, in decode steps and in plain reads.

    `steps` is keyed by the generation method; `limit` is the faster of two plain reads.
    """

    steps: Mapping[str, list[float]]
    limit: list[float]


def step_bytes(core: Transformer) -> int:
    """Bytes of weights that a decode step reads: all except lookup tables."""
    tables = (core.positions, core.embedding, core.segments)
    skipped = {id(table) for table in tables if table is not None}
    return sum(
        parameter.numel() * parameter.element_size()
        for parameter in core.parameters()
        if id(parameter) not in skipped
    )


def measure_read_rates(
    core: Transformer,
    streams: Mapping[str, Callable[[], Iterable[Step]]],
    *,
    n_reads: int,
    repeats: int,
) -> ReadRates:
    """Measure decode steps for each generation method, and plain reads of the same size.

    They alternate; a round has `n_reads` plain reads. A round's limit is the faster of two ways to
    read memory, a sum of all numbers or one row times a matrix. The hardware may be faster still,
    but this is what PyTorch reaches.
    """
    n_bytes = step_bytes(core)
    width = core.config.d_model
    row = torch.ones(1, width)
    matrix = torch.ones(width, n_bytes // 4 // width)

    def step_rate(steps: Callable[[], Iterable[Step]]) -> float:
        seconds = [step.seconds for step in steps() if step.kind == "decode"]
        return n_bytes * len(seconds) / sum(seconds)

    def read_rate(read: Callable[[], object]) -> float:
        seconds = seconds_of(lambda: [read() for _ in range(n_reads)])
        return matrix.numel() * matrix.element_size() * n_reads / seconds

    reads: dict[str, Callable[[], object]] = {
        "sum": matrix.sum,
        "product": lambda: linear(row, matrix),
    }
    with torch.inference_mode():
        rates = interleave(
            {name: partial(step_rate, steps) for name, steps in streams.items()}
            | {name: partial(read_rate, read) for name, read in reads.items()},
            repeats=repeats,
        )
    limit = [max(pair) for pair in zip(rates["sum"], rates["product"], strict=True)]
    return ReadRates({name: rates[name] for name in streams}, limit)


def format_read_rates(reading: ReadRates) -> str:
    """Both rates and their ratio for each generation method, as text."""
    limit = Samples(tuple(rate / 1e9 for rate in reading.limit))
    lines = []
    for name, rates in reading.steps.items():
        steps = Samples(tuple(rate / 1e9 for rate in rates))
        ratio = paired_ratio(rates, reading.limit)
        verdict = "reached" if ratio.median >= TARGET_OF_LIMIT else "not reached"
        lines.append(
            f"{name}: decode steps read weights at {steps:.1f} GB/s, limit {limit:.1f} GB/s, "
            f"ratio {ratio:.2f}; target {TARGET_OF_LIMIT}: {verdict}"
        )
    return "\n".join(lines)
