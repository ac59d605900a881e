"""Timed generations with this core and with transformers, and their tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from attention_core import Step, Transformer, stream
from attention_core.costs.stopwatch import Samples, paired_ratio, synchronize
from benchmarks.timing import table

PEERS = {"transformers sdpa": "sdpa", "transformers eager": "eager"}


@dataclass(frozen=True)
class GenerationRun:
    """One timed generation.

    token_ids: the tokens of the first of `n_prompts` prompts, which all get equally many new
    tokens.
    seconds: wall-clock time. prefill_seconds, decode_seconds: model calls only, for the core.
    n_passes: number of model runs if it's not one per token.
    """

    token_ids: list[int]
    seconds: float
    prefill_seconds: float | None = None
    decode_seconds: float | None = None
    n_prompts: int = 1
    n_passes: int | None = None

    @property
    def tokens_per_second(self) -> float:
        """New tokens of all prompts per wall-clock second."""
        return self.n_prompts * len(self.token_ids) / self.seconds


def core_run(
    core: Transformer, prompt_ids: Sequence[int], max_new_tokens: int, *, cached: bool
) -> GenerationRun:
    """Generate with the core."""
    return run_of(lambda: core_stream(core, prompt_ids, max_new_tokens, cached=cached))


def core_stream(
    core: Transformer, prompt_ids: Sequence[int], max_new_tokens: int, *, cached: bool
) -> Iterator[Step]:
    """The steps of a generation with the core."""
    cache = core.new_cache(1, len(prompt_ids) + max_new_tokens) if cached else None
    return stream(core, prompt_ids, max_new_tokens=max_new_tokens, cache=cache)


def run_of(start: Callable[[], Iterator[Step]]) -> GenerationRun:
    """Time the steps that `start` returns."""
    begin = time.perf_counter()
    steps = start()
    # keep no logits, so that the next step can reuse their memory
    token_ids, step_seconds = zip(*((step.token_id, step.seconds) for step in steps), strict=True)
    seconds = time.perf_counter() - begin
    return GenerationRun(
        token_ids=list(token_ids),
        seconds=seconds,
        prefill_seconds=step_seconds[0],
        decode_seconds=sum(step_seconds[1:]),
    )


def transformers_run(
    reference: Any, prompt_ids: Sequence[int], max_new_tokens: int, attention: str
) -> GenerationRun:
    """Generate with transformers, cached, in inference mode."""
    reference.set_attn_implementation(attention)
    with torch.inference_mode():
        prompt = torch.tensor([prompt_ids], device=reference.device)
        synchronize()
        begin = time.perf_counter()
        sequence = reference.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=max_new_tokens,
            do_sample=False,
            use_cache=True,
        )
        synchronize()
        seconds = time.perf_counter() - begin
    return GenerationRun(token_ids=sequence[0, len(prompt_ids) :].tolist(), seconds=seconds)


def peer_calls(
    reference: Any, prompt_ids: Sequence[int], max_new_tokens: int
) -> dict[str, Callable[[], GenerationRun]]:
    """A call for each attention implementation of transformers, by name."""
    return {
        name: partial(transformers_run, reference, prompt_ids, max_new_tokens, attention)
        for name, attention in PEERS.items()
    }


def speed_table(runs: Mapping[str, Sequence[GenerationRun]]) -> str:
    """One row per generation method: tokens per second, and the time of each part."""
    rows = [("", "tokens/s", "seconds", "prefill ms", "decode ms/step")]
    for name, repeats in runs.items():
        rows.append(
            (
                name,
                f"{_samples(run.tokens_per_second for run in repeats):.1f}",
                f"{_samples(run.seconds for run in repeats):.2f}",
                *_phases(repeats),
            )
        )
    return table(rows)


def speeds(runs: Mapping[str, Sequence[GenerationRun]]) -> dict[str, list[float]]:
    """Tokens per second of every run, by name."""
    return {name: [run.tokens_per_second for run in repeats] for name, repeats in runs.items()}


def faster_peer(runs: Mapping[str, Sequence[GenerationRun]]) -> str:
    """The faster of the transformers runs, by median."""
    return max(PEERS, key=lambda name: _samples(run.tokens_per_second for run in runs[name]).median)


def _phases(repeats: Sequence[GenerationRun]) -> tuple[str, str]:
    """Milliseconds of the prefill and of a decode step, or dashes if not measured."""
    prefill = [1e3 * run.prefill_seconds for run in repeats if run.prefill_seconds is not None]
    decode = [
        1e3 * run.decode_seconds / max(1, (run.n_passes or len(run.token_ids)) - 1)
        for run in repeats
        if run.decode_seconds is not None
    ]
    if not prefill or not decode:
        return "-", "-"
    return f"{Samples(tuple(prefill)):.1f}", f"{Samples(tuple(decode)):.1f}"


def ratio_line(
    speeds: dict[str, list[float]], one: str, other: str, target: float | None = None
) -> str:
    """The speedup of `one` over `other`, paired, and whether it reaches the target."""
    ratio = paired_ratio(speeds[one], speeds[other])
    line = f"{one}: {ratio:.2f} times as fast as {other}"
    if target is None:
        return line
    return f"{line}; target {target}: {'reached' if ratio.median >= target else 'not reached'}"


def _samples(values: Iterable[float]) -> Samples:
    return Samples(tuple(values))
