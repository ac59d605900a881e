"""How fast a machine can read memory, and how near to that a decode step comes.

A decode step of one prompt reads every weight once and does little else, so the time to read them
is the least that it can take. `benchmarks.decode` prints both.
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
    """Bytes a second, one number a repeat: those of weights in decode steps, and the limit's.

    `steps` has them by the name of the way to generate.
    """

    steps: Mapping[str, list[float]]
    limit: list[float]


def step_bytes(core: Transformer) -> int:
    """The bytes of weights that a decode step reads: all but tables, of which it reads one row."""
    tables = (core.positions, core.embedding, core.segments)
    skipped = {id(table) for table in tables if table is not None}
    return sum(
        parameter.numel() * parameter.element_size()
        for parameter in core.parameters()
        if id(parameter) not in skipped
    )


def measure_reading(
    core: Transformer,
    streams: Mapping[str, Callable[[], Iterable[Step]]],
    *,
    n_reads: int,
    repeats: int,
) -> ReadRates:
    """The decode steps of each way to generate with `core`, and plain reads of as many bytes.

    They take turns; a round has `n_reads` plain reads. Its limit is the faster of two ways to read:
    the sum of all numbers, and one row times a matrix. The machine may be able to do more: it is
    what torch was seen to reach.
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


def reading_lines(reading: ReadRates) -> str:
    """For each way to generate both rates and their ratio, in words."""
    limit = Samples(tuple(rate / 1e9 for rate in reading.limit))
    lines = []
    for name, rates in reading.steps.items():
        steps = Samples(tuple(rate / 1e9 for rate in rates))
        ratio = paired_ratio(rates, reading.limit)
        verdict = "reached" if ratio.median >= TARGET_OF_LIMIT else "not reached"
        lines.append(
            f"{name} reads {steps:.1f} GB/s of weights in decode steps, this machine {limit:.1f}: "
            f"{ratio:.2f} of it; target {TARGET_OF_LIMIT}: {verdict}"
        )
    return "\n".join(lines)
