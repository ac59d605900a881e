"""A model's pass while other threads draw pages: `python -m benchmarks.busy_threads`.

One thread runs a random model of GPT-2 124M's shape over a few tokens. Beside it other threads do
nothing but Python, as pages of other visitors do while they are drawn. torch gives the interpreter
away during every operation, and a busy thread hands it back after the switch interval of
`sys.setswitchinterval`: Python's own, and the one that a site sets (`serving/interpreter.py`).
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from transformers import GPT2Config

from attention_core.costs.stopwatch import Samples, interleave, paired_ratio, seconds_of
from benchmarks.timing import machine, table
from pretrained.untrained import random_gpt2
from pretrained.weights import core_from_reference
from serving.limits import SWITCH_SECONDS

PYTHONS_OWN_SECONDS = 0.005
N_TOKENS = 15


@contextmanager
def busy_threads(count: int, switch_seconds: float) -> Iterator[None]:
    """So many threads that do nothing but Python, under a switch interval."""
    before = sys.getswitchinterval()
    done = threading.Event()

    def draw() -> None:
        number = 0
        while not done.is_set():
            number = (number * 7 + 1) % 1_000_003

    threads = [threading.Thread(target=draw) for _ in range(count)]
    sys.setswitchinterval(switch_seconds)
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)


def measure(
    run: Callable[[], object], counts: Sequence[int], *, repeats: int
) -> dict[tuple[int, float], list[float]]:
    """Seconds of `run` by the number of busy threads and the switch interval, one a repeat."""

    def beside(count: int, switch_seconds: float) -> Callable[[], float]:
        def timed() -> float:
            with busy_threads(count, switch_seconds):
                return seconds_of(run)

        return timed

    settings = [(0, PYTHONS_OWN_SECONDS)] + [
        (count, seconds) for count in counts for seconds in (PYTHONS_OWN_SECONDS, SWITCH_SECONDS)
    ]
    numbered = {str(i): beside(*setting) for i, setting in enumerate(settings)}
    measured = interleave(numbered, repeats=repeats)
    return {setting: measured[str(i)] for i, setting in enumerate(settings)}


def main(arguments: Sequence[str] | None = None, *, config: GPT2Config | None = None) -> int:
    """Measure and print the table; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy_threads")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--busy", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args(arguments)
    core = core_from_reference(random_gpt2(config or GPT2Config()))
    ids = torch.arange(N_TOKENS)[None]

    def run() -> None:
        with torch.inference_mode():
            core(ids)

    measured = measure(run, options.busy, repeats=options.repeats)
    alone = measured[0, PYTHONS_OWN_SECONDS]
    rows: list[tuple[str, ...]] = [("busy threads", "switch, ms", "seconds", "times alone")]
    for (count, seconds), values in measured.items():
        ratio = paired_ratio(values, alone)
        times = f"{Samples(tuple(values)):.3f}"
        rows.append((str(count), f"{1000 * seconds:g}", times, f"{ratio:.1f}"))
    print(f"A pass over {N_TOKENS} tokens of a random model of GPT-2 124M's shape")
    print(f"{machine()}; median (min..max) of {options.repeats} interleaved repeats\n")
    print(table(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
