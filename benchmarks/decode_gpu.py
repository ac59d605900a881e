"""Decoding speed for the sizes of GPT-2 124M, bfloat16 on a GPU.

`python -m benchmarks.decode_gpu` generates 200 tokens greedily after a prompt of 5, with all runs
interleaved in one process:

    core graphs            `Decoder`: steps recorded as a CUDA graph, which return the token
    core step by step      the same steps, with each kernel launched from Python
    core cached            `stream` with a KVCache, which also returns the logits of every step
    transformers sdpa      `generate` of transformers with its cache, default attention
    transformers eager     the same with eager attention

All have the same random weights. Recorded and unrecorded steps must produce the same tokens, or the
benchmark fails. The others multiply tensors of different shapes, so their sums are rounded
differently in 16 bits; for them, the first token that differs is printed. Times cover the whole
call; graphs are recorded earlier. The faster of the two transformers runs is the peer. Without a
GPU, nothing is measured.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
from transformers import GPT2Config

from attention_core.costs.stopwatch import Samples, interleave, synchronize
from attention_core.speed.decoder import Decoder
from benchmarks.decode import PROMPT_IDS
from benchmarks.runs import (
    GenerationRun,
    core_run,
    faster_peer,
    peer_calls,
    ratio_line,
    speeds,
)
from benchmarks.timing import table
from pretrained.untrained import random_gpt2
from pretrained.weights import core_from_reference

TARGET = 4.0  # speedup of recorded steps over transformers
_GRAPHS, _STEPS, _CACHED = "core graphs", "core step by step", "core cached"


class _StepByStep(Decoder):
    """A decoder that doesn't record its steps."""

    def prepare(self) -> None:
        pass


def measure(
    config: GPT2Config,
    prompt_ids: Sequence[int],
    device: torch.device,
    *,
    max_new_tokens: int,
    repeats: int,
) -> dict[str, list[GenerationRun]]:
    """Run everything after one warm-up each; returns the runs by name.

    Raises: RuntimeError if recorded and unrecorded steps choose different tokens.
    """
    reference = random_gpt2(config).to(device, torch.bfloat16)
    core = core_from_reference(reference).to(device).eval().requires_grad_(False)
    room = len(prompt_ids) + max_new_tokens
    decoders = {_GRAPHS: Decoder(core, room), _STEPS: _StepByStep(core, room)}
    calls: dict[str, Callable[[], GenerationRun]] = {
        name: partial(_timed, decoder, prompt_ids, max_new_tokens)
        for name, decoder in decoders.items()
    }
    calls[_CACHED] = partial(core_run, core, prompt_ids, max_new_tokens, cached=True)
    calls |= peer_calls(reference, prompt_ids, max_new_tokens)
    runs = interleave(calls, repeats=repeats)
    expected = runs[_STEPS][0].token_ids
    for run in (*runs[_STEPS], *runs[_GRAPHS]):
        if run.token_ids != expected:
            raise RuntimeError(
                f"{_GRAPHS} and {_STEPS} differ starting at new token "
                f"{_first_difference(run.token_ids, expected)}"
            )
    return runs


def _timed(decoder: Decoder, prompt_ids: Sequence[int], max_new_tokens: int) -> GenerationRun:
    synchronize()
    begin = time.perf_counter()
    token_ids = decoder.generate(prompt_ids, max_new_tokens=max_new_tokens)
    synchronize()
    return GenerationRun(token_ids, time.perf_counter() - begin)


def _first_difference(token_ids: Sequence[int], others: Sequence[int]) -> int | None:
    """The first index at which two texts of equal length differ, or None."""
    pairs = enumerate(zip(token_ids, others, strict=True))
    return next((place for place, (one, other) in pairs if one != other), None)


def report(runs: dict[str, list[GenerationRun]]) -> str:
    """The table, the first differing tokens, and the ratio as text."""
    rows = [("", "tokens/s", "seconds", "tokens same as recorded")]
    expected = runs[_GRAPHS][0].token_ids
    for name, repeats in runs.items():
        place = _first_difference(repeats[0].token_ids, expected)
        rows.append(
            (
                name,
                f"{Samples(tuple(run.tokens_per_second for run in repeats)):.1f}",
                f"{Samples(tuple(run.seconds for run in repeats)):.3f}",
                "all" if place is None else f"until {place}",
            )
        )
    return f"{table(rows)}\n\n{ratio_line(speeds(runs), _GRAPHS, faster_peer(runs), TARGET)}"


def main(
    arguments: Sequence[str] | None = None,
    *,
    config: GPT2Config | None = None,
    prompt_ids: Sequence[int] = PROMPT_IDS,
    max_new_tokens: int = 200,
    device: torch.device | None = None,
) -> int:
    """Measure, print, and return the exit status: 1 if the tokens differ.

    device: where to run, by default a GPU.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decode_gpu")
    parser.add_argument(
        "--repeats", type=int, default=5, help="repeats of each run, after one warm-up"
    )
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    if device is None and not torch.cuda.is_available():
        print("This benchmark needs a GPU, and none was found.")
        return 0
    device = device or torch.device("cuda")
    config = config or GPT2Config()
    try:
        runs = measure(
            config, prompt_ids, device, max_new_tokens=max_new_tokens, repeats=options.repeats
        )
    except RuntimeError as error:
        print(f"benchmarks.decode_gpu: {error}", file=sys.stderr)
        return 1
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU, no recorded steps"
    print(
        f"Greedy decoding, {len(prompt_ids)} prompt + {max_new_tokens} new tokens, "
        f"{config.n_layer} layers of width {config.n_embd}, random weights, bfloat16\n"
        f"{name}, torch {torch.__version__}; median (min..max) of {options.repeats} interleaved "
        "repeats\n"
    )
    print(report(runs))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
