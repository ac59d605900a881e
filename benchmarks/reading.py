"""How fast a machine can read memory, and how near to that a decode step comes.

A decode step of one prompt reads every weight once and does little else, so the time to read them
is the least that it can take. `benchmarks.decode` prints both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from attention_core import Transformer, stream
from attention_core.costs.stopwatch import Samples, interleave, paired_ratio, seconds_of
from attention_core.model.layers import project

TARGET_OF_LIMIT = 0.8


@dataclass(frozen=True)
class Reading:
    """Bytes a second, one number a repeat: those of weights in decode steps, and the limit's."""

    steps: list[float]
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
    core: Transformer, prompt_ids: Sequence[int], *, max_new_tokens: int, repeats: int
) -> Reading:
    """Decode steps and plain reads of as many bytes, as often, in turns.

    The limit of a round is the faster of two ways to read: the sum of all numbers, and one row
    times a matrix. The machine may be able to do more: it is what torch was seen to reach.
    """
    n_bytes, n_steps = step_bytes(core), max_new_tokens - 1
    width = core.config.d_model
    row = torch.ones(1, width)
    matrix = torch.ones(width, n_bytes // 4 // width)

    def step_rate() -> float:
        cache = core.new_cache(1, len(prompt_ids) + max_new_tokens)
        steps = stream(core, prompt_ids, max_new_tokens=max_new_tokens, cache=cache)
        return n_bytes * n_steps / sum(step.seconds for step in steps if step.kind == "decode")

    def read_rate(read: Callable[[], object]) -> float:
        seconds = seconds_of(lambda: [read() for _ in range(n_steps)])
        return matrix.numel() * matrix.element_size() * n_steps / seconds

    with torch.inference_mode():
        rates = interleave(
            {
                "steps": step_rate,
                "sum": lambda: read_rate(matrix.sum),
                "product": lambda: read_rate(lambda: project(row, matrix)),
            },
            repeats=repeats,
        )
    limit = [max(pair) for pair in zip(rates["sum"], rates["product"], strict=True)]
    return Reading(rates["steps"], limit)


def reading_line(reading: Reading) -> str:
    """Both rates and their ratio, in words."""
    steps = Samples(tuple(rate / 1e9 for rate in reading.steps))
    limit = Samples(tuple(rate / 1e9 for rate in reading.limit))
    ratio = paired_ratio(reading.steps, reading.limit)
    verdict = "reached" if ratio.median >= TARGET_OF_LIMIT else "not reached"
    return (
        f"core cached reads {steps:.1f} GB/s of weights in decode steps, this machine {limit:.1f}: "
        f"{ratio:.2f} of it; target {TARGET_OF_LIMIT}: {verdict}"
    )
