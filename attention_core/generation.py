"""Generation: one token a step, with a cache or without, timed where the model runs.

Prefill (the prompt's pass) and decode (one pass a token) are steps of different kinds, as in
gpt-fast; the time of neither is dropped.
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
from attention_core.model.forward_pass import NO_HOOKS, Hooks
from attention_core.model.inputs import check_cache, check_devices, prompt_ids, stop_set
from attention_core.model.transformer import Transformer
from attention_core.sampling import Sampling, sample


@dataclass(frozen=True)
class Step:
    """One generated token and what it took.

    `logprob` is the natural logarithm of the model's own probability of the token, before
    temperature and filters. `seconds` is the time of the model call alone, the device synchronised.
    `n_new` tokens were run against `n_keys` keys (with those that a window hides); `cache_length`
    tokens have been stored afterwards (0 without a cache). `flops` counts the matrix products.
    `logits` is (V,), float32, on the CPU.
    `records` are those of the pass that chose the token, one a layer, where they were asked for.
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
    """Yield one `Step` a new token; the first is the prefill.

    `token_ids` is the prompt: a list, a tuple, a numpy array, or a tensor (T) or (1, T) on any
    device.
    Without a cache every step runs the whole sequence again. With one, the prompt runs once and
    each later step runs one token. A cache that already holds tokens is continued; they must be of
    the same model. Generation ends after `max_new_tokens`, or after a token in `stop_ids`, a
    collection of ids. The `hooks` go to every forward pass. With `record` every step carries the
    records of its pass.
    Raises: ValueError, before anything runs, for a prompt that is empty or no row of ids of the
    vocabulary, stop ids that are not whole numbers, a model without logits, a cache of another
    shape or device than the model's, or more tokens than the context or the cache can hold. Later,
    if something else has changed the cache since the last step.
    """
    prompt = prompt_ids(token_ids, model.config.vocab_size)
    check_room(model.config, len(prompt), max_new_tokens, cache)
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
    """The new token ids, by draining `stream` (same arguments and errors)."""
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
    """What all steps of one generation share; the meanings are those of `stream`.

    `state` is that of the cache before the first step.
    """

    model: Transformer
    cache: KVCache | None
    state: tuple[int, int]
    sampling: Sampling
    stop_ids: frozenset[int]
    hooks: Hooks
    record: bool

    def steps(self, prompt: list[int], max_new_tokens: int) -> Iterator[Step]:
        """Run the prompt, then one token a step, or the whole sequence without a cache."""
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
    """Run new tokens (B, T), with the options of a forward pass, in inference mode.

    Returns the last position's logits (B, V), float32 on the CPU, the model's seconds, the records.
    """
    # not around the loop that yields steps: between two of them it would be on in the reader's code
    with torch.inference_mode():
        synchronize(new.device)
        begin = time.perf_counter()  # [start time]
        output = model(new, last_only=True, **options)  # [forward pass]
        synchronize(new.device)
        seconds = time.perf_counter() - begin  # [seconds]
        return output.logits[:, -1].float().cpu(), seconds, output.records


def check_room(
    config: TransformerConfig, n_prompt: int, max_new_tokens: int, cache: KVCache | None = None
) -> None:
    """Raises: ValueError, with the numbers, where a prompt and its new tokens have no room."""
    if config.output == "none":
        raise ValueError("this model has no output matrix: it cannot generate")
    require_int("max_new_tokens", max_new_tokens)
    if cache is not None:
        check_cache(config, cache)
        if cache.batch_size != 1:
            raise ValueError(f"one prompt does not fit a cache for {cache.batch_size}")
    start = 0 if cache is None else cache.length
    needed = start + n_prompt + max_new_tokens - 1  # the last new token is never run itself
    room = config.context_length if cache is None else cache.max_length
    if needed > room:
        raise ValueError(
            f"{start + n_prompt} prompt + {max_new_tokens} new tokens need {needed} "
            f"positions, but the {'context' if cache is None else 'cache'} holds {room}"
        )
