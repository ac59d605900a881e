"""Decoding speed for the sizes of GPT-2 124M, float32 on the CPU.

`python -m benchmarks.decode` generates 100 tokens greedily after a prompt of 5, with all runs
interleaved in one process:

    core cached            this core with a KVCache
    core compiled          also with its decode step compiled, before the clock starts
    core batch 8           with a cache for 8 prompts at once, this one and 7 shorter ones
    core int8              with a cache and 8-bit matrices: a quarter of the bytes to read
    core int8 compiled     also with the step compiled
    core uncached          without a cache: every step runs the whole sequence
    transformers sdpa      `generate` of transformers with its cache, default attention
    transformers eager     the same with eager attention

All have the same random weights and must produce the same token ids, except int8, whose weights
are rounded. Otherwise the benchmark fails with a message. Times cover the whole call, including the
prompt's pass and creating the cache. The only exception is the cache for a compiled step, which is
created earlier because the step is compiled for it. The faster of the two transformers runs is the
peer. Speed is new tokens per second, summed over all prompts in a batch.

At the end, the benchmark compares decode steps with the speed at which this machine reads memory
(`benchmarks/read_rates.py`), and measures a trained model with speculative decoding
(`benchmarks/speculative.py`). Compiling takes three to ten minutes and needs a C++ compiler;
`--no-compile` skips everything that's compiled.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from transformers import GPT2Config

from attention_core import Step, Transformer, stream_batch
from attention_core.costs.stopwatch import interleave
from attention_core.speed.compilation import NoCompilerError
from attention_core.speed.decoder import Decoder
from attention_core.speed.int8 import Int8Transformer
from benchmarks import speculative
from benchmarks.read_rates import ReadRates, format_read_rates, measure_read_rates
from benchmarks.runs import (
    GenerationRun,
    core_run,
    core_stream,
    faster_peer,
    peer_calls,
    ratio_line,
    run_of,
    speed_table,
    speeds,
)
from benchmarks.speculative import TrainedModel
from benchmarks.timing import machine
from pretrained.untrained import random_gpt2
from pretrained.weights import core_from_reference

PROMPT_IDS = (464, 1306, 1110, 318, 6016)  # "The next day is bright"
TARGET_OVER_TRANSFORMERS = 1.8
TARGET_OF_INT8 = 2.5  # speedup over transformers
TARGET_OF_BATCH = 3.0
BATCH_SIZE = 8
_CACHED, _UNCACHED, _BATCH = "core cached", "core uncached", f"core batch {BATCH_SIZE}"
_COMPILED = "core compiled"
_INT8, _INT8_COMPILED = "core int8", "core int8 compiled"


@dataclass(frozen=True)
class Models:
    """The same random weights in transformers, in this core, and in its 8-bit form.

    `compiled` has decoders for the two core models, or is empty if nothing is compiled.
    """

    reference: Any
    core: Transformer
    int8: Int8Transformer
    compiled: Mapping[str, Decoder]

    @classmethod
    def random(cls, config: GPT2Config, max_length: int, *, compile_step: bool) -> Models:
        """Build all models. Raises: NoCompilerError if compiling isn't possible."""
        reference = random_gpt2(config)
        core = core_from_reference(reference)
        int8 = Int8Transformer(core)
        chosen = {_COMPILED: core, _INT8_COMPILED: int8} if compile_step else {}
        decoders = {
            name: Decoder(model, max_length, compile_step=True) for name, model in chosen.items()
        }
        return cls(reference, core, int8, decoders)


def core_batch_run(
    core: Transformer, prompt_ids: Sequence[int], max_new_tokens: int
) -> GenerationRun:
    """Generate with the core for `BATCH_SIZE` prompts: `prompt_ids` and shorter ones."""
    begin = time.perf_counter()
    prompts = [prompt_ids[row % len(prompt_ids) :] for row in range(BATCH_SIZE)]
    passes = list(stream_batch(core, prompts, max_new_tokens=max_new_tokens))
    seconds = time.perf_counter() - begin
    first = [steps[0] for steps in passes if steps[0] is not None]
    return GenerationRun(
        token_ids=[step.token_id for step in first],
        seconds=seconds,
        prefill_seconds=first[0].seconds,
        decode_seconds=sum(step.seconds for step in first[1:]),
        n_prompts=len(prompts),
    )


def measure(
    models: Models, prompt_ids: Sequence[int], *, max_new_tokens: int, repeats: int
) -> dict[str, list[GenerationRun]]:
    """Run everything after one warm-up each; returns the runs by name.

    Raises: RuntimeError if the tokens differ, or are too repetitive to compare.
    """
    reference, core, int8 = models.reference, models.core, models.int8
    calls: dict[str, Callable[[], GenerationRun]] = {
        _CACHED: lambda: core_run(core, prompt_ids, max_new_tokens, cached=True),
        _INT8: lambda: core_run(int8, prompt_ids, max_new_tokens, cached=True),
        _BATCH: lambda: core_batch_run(core, prompt_ids, max_new_tokens),
        _UNCACHED: lambda: core_run(core, prompt_ids, max_new_tokens, cached=False),
    }
    for name, decoder in models.compiled.items():
        start = partial(decoder.stream, prompt_ids, max_new_tokens=max_new_tokens)
        calls[name] = partial(run_of, start)
    calls |= peer_calls(reference, prompt_ids, max_new_tokens)
    runs = interleave(calls, repeats=repeats)
    check_tokens(runs, max_new_tokens)
    return runs


def check_tokens(runs: dict[str, list[GenerationRun]], max_new_tokens: int) -> None:
    """Raise RuntimeError unless all runs have the same varied tokens.

    8-bit runs may have different tokens, because their weights are rounded.
    """
    expected = runs[_CACHED][0].token_ids
    if len(expected) != max_new_tokens:
        raise RuntimeError(f"got {len(expected)} new tokens instead of {max_new_tokens}")
    if len(set(expected)) < max_new_tokens // 4:
        raise RuntimeError(f"only {len(set(expected))} different tokens: too few to compare")
    for name, repeats in runs.items():
        for run in repeats:
            if name in (_INT8, _INT8_COMPILED) and len(run.token_ids) == max_new_tokens:
                continue
            if run.token_ids != expected:
                pairs = zip(run.token_ids, expected, strict=False)
                first = next((i for i, (a, b) in enumerate(pairs) if a != b), "the end")
                raise RuntimeError(f"{name} and {_CACHED} differ starting at new token {first}")


def report(runs: dict[str, list[GenerationRun]]) -> str:
    """The table and the ratios as text."""
    peer, rates = faster_peer(runs), speeds(runs)
    n_different = len(set(runs[_CACHED][0].token_ids))
    targets = {
        _CACHED: TARGET_OVER_TRANSFORMERS,
        _COMPILED: TARGET_OVER_TRANSFORMERS,
        _INT8: TARGET_OF_INT8,
        _INT8_COMPILED: TARGET_OF_INT8,
    }
    return "\n".join(
        [
            speed_table(runs),
            "",
            f"all float32 runs have the same token ids, {n_different} of them different",
            *(
                ratio_line(rates, name, peer, target)
                for name, target in targets.items()
                if name in rates
            ),
            ratio_line(rates, _CACHED, _UNCACHED),
            ratio_line(rates, _BATCH, _CACHED, TARGET_OF_BATCH),
        ]
    )


def main(
    arguments: Sequence[str] | None = None,
    *,
    config: GPT2Config | None = None,
    prompt_ids: Sequence[int] = PROMPT_IDS,
    max_new_tokens: int = 100,
    tuning_run: TrainedModel | None = None,
) -> int:
    """Measure, print, and return the exit status: 1 if the tokens differ.

    tuning_run: the model for speculative decoding, SmolLM2 by default.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decode")
    parser.add_argument(
        "--repeats", type=int, default=5, help="repeats of each run, after one warm-up"
    )
    parser.add_argument("--no-compile", action="store_true", help="skip the compiled steps")
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    config = config or GPT2Config()
    max_length = len(prompt_ids) + max_new_tokens
    try:
        models = Models.random(config, max_length, compile_step=not options.no_compile)
        runs = measure(models, prompt_ids, max_new_tokens=max_new_tokens, repeats=options.repeats)
    except NoCompilerError as error:
        print(f"benchmarks.decode: {error}. --no-compile skips this.", file=sys.stderr)
        return 1
    except RuntimeError as error:
        print(f"benchmarks.decode: {error}", file=sys.stderr)
        return 1
    print(
        f"Greedy decoding, {len(prompt_ids)} prompt + {max_new_tokens} new tokens, "
        f"{config.n_layer} layers of width {config.n_embd}, random weights"
    )
    print(f"{machine()}; median (min..max) of {options.repeats} interleaved repeats\n")
    print(report(runs))
    print(format_read_rates(_reading(models, prompt_ids, min(max_new_tokens, 20), options.repeats)))
    if options.no_compile:
        return 0
    del models
    tuning_run = tuning_run or TrainedModel.bundled()
    try:
        runs = speculative.measure(
            tuning_run, max_new_tokens=max_new_tokens, repeats=options.repeats, compile_step=True
        )
    except RuntimeError as error:
        print(f"benchmarks.decode: {error}", file=sys.stderr)
        return 1
    print(f"\n{speculative.report(tuning_run, runs, TARGET_OVER_TRANSFORMERS)}")
    return 0


def _reading(models: Models, prompt_ids: Sequence[int], n_new: int, repeats: int) -> ReadRates:
    """The speed at which decode steps read weights, from a few steps."""
    core = models.core
    streams: dict[str, Callable[[], Iterator[Step]]] = {
        _CACHED: lambda: core_stream(core, prompt_ids, n_new, cached=True)
    }
    if _COMPILED in models.compiled:
        decoder = models.compiled[_COMPILED]
        streams[_COMPILED] = partial(decoder.stream, prompt_ids, max_new_tokens=n_new)
    return measure_read_rates(core, streams, n_reads=n_new - 1, repeats=repeats)


if __name__ == "__main__":
    raise SystemExit(main())
