"""Generation: one token a step, with a cache or without, timed where the model runs.

Prefill (the prompt's pass) and decode (one pass a token) are steps of different kinds, as in
gpt-fast; the time of neither is dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from attention_core.attend import AttentionRecord
from attention_core.cache import KVCache
from attention_core.costs.formulas import forward_flops
from attention_core.costs.stopwatch import synchronize
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
    token_ids: Sequence[int],
    *,
    max_new_tokens: int,
    cache: KVCache | None = None,
    sampling: Sampling | None = None,
    stop_ids: Collection[int] = (),
    on_layer: Callable[[int], None] | None = None,
    record: bool = False,
) -> Iterator[Step]:
    """Yield one `Step` a new token; the first is the prefill.

    Without a cache every step runs the whole sequence again. With one, the prompt runs once and
    each later step runs one token. A cache that already holds tokens is continued. Generation ends
    after `max_new_tokens`, or after a token in `stop_ids`. `on_layer` is handed to every forward
    pass, which it may abandon by raising: a long pass need not be waited for. With `record` every
    step carries the records of its pass.
    Raises: ValueError, before anything runs, for an empty prompt, a model without logits, or more
    tokens than the context or the cache can hold.
    """
    start = cache.length if cache is not None else 0
    _check(model, token_ids, max_new_tokens, cache, start)
    return _steps(
        model,
        token_ids,
        max_new_tokens,
        cache,
        start,
        sampling or Sampling(),
        frozenset(stop_ids),
        on_layer,
        record,
    )


def generate(
    model: Transformer,
    token_ids: Sequence[int],
    *,
    max_new_tokens: int,
    cache: KVCache | None = None,
    sampling: Sampling | None = None,
    stop_ids: Collection[int] = (),
    on_layer: Callable[[int], None] | None = None,
) -> list[int]:
    """The new token ids, by draining `stream` (same arguments and errors)."""
    steps = stream(
        model,
        token_ids,
        max_new_tokens=max_new_tokens,
        cache=cache,
        sampling=sampling,
        stop_ids=stop_ids,
        on_layer=on_layer,
    )
    return [step.token_id for step in steps]


def _steps(
    model: Transformer,
    token_ids: Sequence[int],
    max_new_tokens: int,
    cache: KVCache | None,
    start: int,
    sampling: Sampling,
    stop_ids: frozenset[int],
    on_layer: Callable[[int], None] | None,
    record: bool,
) -> Iterator[Step]:
    n_prompt = len(token_ids)
    sequence = torch.empty(
        1, n_prompt + max_new_tokens, dtype=torch.long, device=next(model.parameters()).device
    )
    sequence[0, :n_prompt] = torch.tensor(token_ids, dtype=torch.long)
    generator = torch.Generator().manual_seed(sampling.seed)
    for step in range(max_new_tokens):
        end = n_prompt + step
        first = end - 1 if cache is not None and step else 0
        new = sequence[:, first:end]
        n_rows = start + end if cache is None else cache.n_keys(end - first)
        logits, seconds, records = _timed_forward(model, new, cache, on_layer, record)
        token_id = sample(logits, sampling, generator)
        sequence[0, end] = token_id
        n_new, n_keys = end - first, start + end
        yield Step(
            kind="decode" if step else "prefill",
            token_id=token_id,
            logprob=float(torch.log_softmax(logits, dim=-1)[token_id]),
            seconds=seconds,
            n_new=n_new,
            n_keys=n_keys,
            cache_length=cache.length if cache is not None else 0,
            flops=forward_flops(model.config, n_new, n_rows),
            logits=logits,
            records=records,
        )
        if token_id in stop_ids:
            return


def _timed_forward(
    model: Transformer,
    token_ids: Tensor,
    cache: KVCache | None,
    on_layer: Callable[[int], None] | None,
    record: bool,
) -> tuple[Tensor, float, tuple[AttentionRecord, ...]]:
    """Logits (V,) of the last position, the seconds of the model call alone, and its records."""
    # inference mode must not leak to the consumer between two steps: hence not around the loop
    with torch.inference_mode():
        synchronize(token_ids.device)
        begin = time.perf_counter()
        output = model(token_ids, cache=cache, last_only=True, on_layer=on_layer, record=record)
        synchronize(token_ids.device)
        seconds = time.perf_counter() - begin
        return output.logits[0, -1].float().cpu(), seconds, output.records


def _check(
    model: Transformer,
    token_ids: Sequence[int],
    max_new_tokens: int,
    cache: KVCache | None,
    start: int,
) -> None:
    if model.config.output == "none":
        raise ValueError("this model has no output matrix: it cannot generate")
    if not token_ids:
        raise ValueError("the prompt has no tokens: at least 1 is needed")
    if min(token_ids) < 0 or max(token_ids) >= model.config.vocab_size:
        raise ValueError(
            f"token ids must be between 0 and {model.config.vocab_size - 1}, "
            f"got {min(token_ids)} to {max(token_ids)}"
        )
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
    # the last new token is never run itself
    needed = start + len(token_ids) + max_new_tokens - 1
    room = model.config.context_length if cache is None else cache.max_length
    if needed > room:
        raise ValueError(
            f"{start + len(token_ids)} prompt + {max_new_tokens} new tokens need {needed} "
            f"positions, but the {'context' if cache is None else 'cache'} holds {room}"
        )
