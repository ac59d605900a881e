"""Token-by-token generation, with or without a cache, timed around the model call.

Prefill (the pass over the prompt) and decode (one pass per token) are separate kinds of steps, as
in gpt-fast, and both are timed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from attention_core.attend import AttentionRecord
from attention_core.cache import KVCache
from attention_core.checks import require_int
from attention_core.costs.formulas import forward_flops
from attention_core.costs.stopwatch import synchronize
from attention_core.model.config import TransformerConfig
from attention_core.model.inputs import check_cache, check_devices, prompt_ids, stop_set
from attention_core.model.pass_context import NO_HOOKS, Hooks
from attention_core.model.transformer import Transformer
from attention_core.sampling import Sampling, sample


@dataclass(frozen=True)
class Step:
    """One generated token, with its probability, time and cost.

    logprob: natural logarithm of the model's probability of the token, before temperature and
    filters.
    seconds: time of the model call alone, with the device synchronized. n_new, n_keys: the pass ran
    `n_new` tokens against `n_keys` keys, including those outside a window.
    cache_length: tokens in the cache afterwards, 0 without a cache.
    flops: operations of the matrix products.
    logits: (V,), float32, on the CPU.
    records: one per layer of the pass that chose the token, if requested.
    """

    kind: Literal["prefill", "decode"]
    token_id: int
    logprob: float
    seconds: float
    n_new: int
    n_keys: int
    cache_length: int
    flops: int
    logits: Tensor = field(repr=False)
    records: tuple[AttentionRecord, ...] = field(default=(), repr=False)


def stream(
    model: Transformer,
    token_ids: Sequence[int] | Tensor,
    *,
    max_new_tokens: int,
    cache: KVCache | None = None,
    sampling: Sampling | None = None,
    stop_ids: Collection[int] = (),
    hooks: Hooks = NO_HOOKS,
    record: bool = False,
) -> Iterator[Step]:
    """Yield one `Step` per new token; the first one is the prefill.

    Without a cache, every step runs the whole sequence. With a cache, the prompt runs once and each
    later step runs a single token. A cache that already has tokens is continued; they must come
    from the same model.

    Args:
        model: a model with an output matrix.
        token_ids: the prompt as a list, a tuple, a NumPy array, or a tensor (T) or (1, T) on any
            device.
        max_new_tokens: generation ends after this many tokens.
        cache: a cache for one sequence, from `model.new_cache`.
        sampling: how tokens are chosen, greedy by default.
        stop_ids: generation also ends after any of these ids.
        hooks: passed to every forward pass.
        record: whether each step carries the records of its pass.

    Raises: ValueError before anything runs if the prompt is empty or isn't one row of valid ids, if
    stop ids aren't whole numbers, if the model has no logits, if the cache has a different shape or
    device than the model, or if the tokens exceed the context or the cache. ValueError later if
    something else changed the cache between two steps.
    """
    prompt = prompt_ids(token_ids, model.config.vocab_size)
    check_capacity(model.config, len(prompt), max_new_tokens, cache)
    check_devices(next(model.parameters()).device, {}, cache)
    state = (0, 0) if cache is None else cache.state
    run = _Run(model, cache, state, sampling or Sampling(), stop_set(stop_ids), hooks, record)
    return run.steps(prompt, max_new_tokens)


def generate(
    model: Transformer,
    token_ids: Sequence[int] | Tensor,
    *,
    max_new_tokens: int,
    cache: KVCache | None = None,
    sampling: Sampling | None = None,
    stop_ids: Collection[int] = (),
    hooks: Hooks = NO_HOOKS,
) -> list[int]:
    """Generate and return the new token ids; arguments and errors as in `stream`."""
    steps = stream(
        model,
        token_ids,
        max_new_tokens=max_new_tokens,
        cache=cache,
        sampling=sampling,
        stop_ids=stop_ids,
        hooks=hooks,
    )
    return [step.token_id for step in steps]


@dataclass(frozen=True)
class _Run:
    """The state shared by all steps of a generation; fields as in `stream`.

    `state` is the state of the cache before the first step.
    """

    model: Transformer
    cache: KVCache | None
    state: tuple[int, int]
    sampling: Sampling
    stop_ids: frozenset[int]
    hooks: Hooks
    record: bool

    def steps(self, prompt: list[int], max_new_tokens: int) -> Iterator[Step]:
        """Run the prompt, then one token per step, or the whole sequence without a cache."""
        cache, state = self.cache, self.state
        n_prompt, start = len(prompt), state[0]
        device = next(self.model.parameters()).device
        sequence = torch.empty(1, n_prompt + max_new_tokens, dtype=torch.long, device=device)
        sequence[0, :n_prompt] = torch.tensor(prompt)
        generator = torch.Generator().manual_seed(self.sampling.seed)
        for end in range(n_prompt, n_prompt + max_new_tokens):
            first = end - 1 if cache is not None and end > n_prompt else 0
            n_new = end - first
            if cache is not None:
                cache.check_state(state)
            n_rows = end if cache is None else cache.n_keys(n_new)
            new, options = sequence[:, first:end], {"hooks": self.hooks, "record": self.record}
            (logits,), seconds, records = timed_pass(self.model, new, cache=cache, **options)
            state = state if cache is None else cache.state
            token_id = sample(logits, self.sampling, generator)
            sequence[0, end] = token_id
            yield Step(
                kind="prefill" if end == n_prompt else "decode",
                token_id=token_id,
                logprob=float(torch.log_softmax(logits, dim=-1)[token_id]),
                seconds=seconds,
                n_new=n_new,
                n_keys=start + end,
                cache_length=0 if cache is None else cache.length,
                flops=forward_flops(self.model.config, n_new, n_rows),
                logits=logits,
                records=records,
            )
            if token_id in self.stop_ids:
                return


def timed_pass(
    model: Transformer, new: Tensor, **options: Any
) -> tuple[Tensor, float, tuple[AttentionRecord, ...]]:
    """Run new tokens (B, T) in inference mode, and time the model call.

    `options` are passed to the model. Returns the logits of the last position (B, V) as float32 on
    the CPU, the seconds, and the records.
    """
    # not around the loop that yields: inference mode would stay on in the caller's code between
    # steps
    with torch.inference_mode():
        synchronize(new.device)
        begin = time.perf_counter()  # [start time]
        output = model(new, last_only=True, **options)  # [forward pass]
        synchronize(new.device)
        seconds = time.perf_counter() - begin  # [seconds]
        return output.logits[:, -1].float().cpu(), seconds, output.records


def check_capacity(
    config: TransformerConfig, n_prompt: int, max_new_tokens: int, cache: KVCache | None = None
) -> None:
    """Raise ValueError with the numbers if a prompt and its new tokens don't fit."""
    if config.output == "none":
        raise ValueError("this model has no output matrix, so it can't generate text")
    require_int("max_new_tokens", max_new_tokens)
    if cache is not None:
        check_cache(config, cache)
        if cache.batch_size != 1:
            raise ValueError(f"one prompt needs a cache for 1 row, got {cache.batch_size} rows")
    start = 0 if cache is None else cache.length
    needed = start + n_prompt + max_new_tokens - 1  # the last new token is never an input
    room = config.context_length if cache is None else cache.max_length
    if needed > room:
        raise ValueError(
            f"{start + n_prompt} prompt + {max_new_tokens} new tokens need {needed} "
            f"positions, but the {'context' if cache is None else 'cache'} has {room}"
        )
