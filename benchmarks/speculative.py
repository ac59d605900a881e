"""Decoding speed of a trained float32 model with an 8-bit draft.

Part of `python -m benchmarks.decode`. A decode step can't be faster than reading its weights, but
with a draft one read can produce several tokens (`attention_core.speed.speculative`). How many
depends on how often the draft is right, so this uses trained weights and a real sentence instead of
random numbers. It's compared with this core and with transformers, both with a cache, and all must
produce the same token ids.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from attention_core import Transformer
from attention_core.costs.stopwatch import Samples, interleave
from attention_core.speed.int8 import Int8Transformer
from attention_core.speed.speculative import SpeculativeDecoder
from benchmarks.runs import (
    GenerationRun,
    core_run,
    faster_peer,
    peer_calls,
    ratio_line,
    speed_table,
    speeds,
)

MODEL = "smollm2-135m-instruct"
TEXT = "The history of the steam engine begins with"
N_DRAFTED = 4
_CACHED, _SPECULATIVE = "core cached", "core drafted in 8 bits"


@dataclass(frozen=True)
class TrainedModel:
    """A trained model in this core and in transformers, with a prompt."""

    title: str
    core: Transformer
    reference: Any
    prompt_ids: Sequence[int]

    @classmethod
    def bundled(cls) -> TrainedModel:
        """SmolLM2. Raises: as in `pretrained.load` if its package is missing."""
        import pretrained

        model = pretrained.load(MODEL, device="cpu")
        ids = model.tokenizer.encode(TEXT).ids
        return cls(model.spec.title, model.core, model.reference, list(ids))


def speculative_run(
    decoder: SpeculativeDecoder, prompt_ids: Sequence[int], max_new_tokens: int
) -> GenerationRun:
    """Generate with drafts."""
    begin = time.perf_counter()
    rounds = list(decoder.rounds(prompt_ids, max_new_tokens=max_new_tokens))
    seconds = time.perf_counter() - begin
    return GenerationRun(
        token_ids=[token_id for settled in rounds for token_id in settled.token_ids],
        seconds=seconds,
        prefill_seconds=rounds[0].seconds,
        decode_seconds=sum(settled.seconds for settled in rounds[1:]),
        n_passes=len(rounds),
    )


def measure(
    model: TrainedModel, *, max_new_tokens: int, repeats: int, compile_step: bool
) -> dict[str, list[GenerationRun]]:
    """Run everything after one warm-up each; returns the runs by name.

    Raises: RuntimeError if the tokens differ.
    """
    core, prompt_ids = model.core, model.prompt_ids
    decoder = SpeculativeDecoder(
        core,
        Int8Transformer(core),
        len(prompt_ids) + max_new_tokens,
        n_drafted=N_DRAFTED,
        compile_step=compile_step,
    )
    calls: dict[str, Callable[[], GenerationRun]] = {
        _CACHED: partial(core_run, core, prompt_ids, max_new_tokens, cached=True),
        _SPECULATIVE: partial(speculative_run, decoder, prompt_ids, max_new_tokens),
    }
    calls |= peer_calls(model.reference, prompt_ids, max_new_tokens)
    runs = interleave(calls, repeats=repeats)
    expected = runs[_CACHED][0].token_ids
    for name, repeated in runs.items():
        if any(run.token_ids != expected for run in repeated):
            raise RuntimeError(f"{name} and {_CACHED} generate different tokens")
    return runs


def report(model: TrainedModel, runs: dict[str, list[GenerationRun]], target: float) -> str:
    """The table, the speedup over transformers and the tokens per pass, as text."""
    n_new = len(runs[_CACHED][0].token_ids)
    # the prompt's pass gives the first token, each later pass at most the guesses plus one
    tokens_a_pass = [(n_new - 1) / (run.n_passes - 1) for run in runs[_SPECULATIVE] if run.n_passes]
    return "\n".join(
        [
            f"{model.title}, trained weights, {len(model.prompt_ids)} prompt + {n_new} new tokens",
            "",
            speed_table(runs),
            "",
            "all runs have the same token ids",
            ratio_line(speeds(runs), _SPECULATIVE, faster_peer(runs), target),
            f"each pass of the model gives {Samples(tuple(tokens_a_pass)):.2f} tokens, "
            f"at most {N_DRAFTED + 1}",
        ]
    )
