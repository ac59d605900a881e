"""Generate from several prompts together, with the same results as one at a time.

Most of a decode step's time goes into reading the weights, and a batch reads them once for all
rows. Prompts of different lengths are padded on the left, so that the last column has the last
token of every row:

    column      0  1  2  3  4 | 5  6
    row 0       a  b  c  d  e | new tokens
    row 1       -  -  -  f  g | new tokens

Three things make each row equal to a run on its own. Its positions start at its own first token.
No query sees padding. Causal masks and windows, which compare columns, still work, because two
tokens of the same row are as many columns apart as they are positions apart.

Dimension letters: B batch (prompts), T new columns, S all columns, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from attention_core.cache import KVCache
from attention_core.costs.formulas import forward_flops
from attention_core.generation import Step, check_capacity, timed_pass
from attention_core.model.inputs import check_cache, prompt_ids, stop_set
from attention_core.model.pass_context import NO_HOOKS, Hooks
from attention_core.model.transformer import Transformer
from attention_core.sampling import Sampling, sample

Value = TypeVar("Value")


def stream_batch(
    model: Transformer,
    prompts: Sequence[Sequence[int] | Tensor],
    *,
    max_new_tokens: int | Sequence[int],
    sampling: Sampling | Sequence[Sampling] | None = None,
    stop_ids: Collection[int] = (),
    hooks: Hooks = NO_HOOKS,
) -> Iterator[tuple[Step | None, ...]]:
    """Yield a tuple for each forward pass: each prompt's `Step`, or None if it's done.

    Tokens and logits of a row equal those of `stream` with a cache and this prompt alone, up to the
    rounding of sums (tests compare them at 1e-5). `max_new_tokens` and `sampling` are one value for
    all prompts or one for each, and every prompt has its own random generator. A prompt ends after
    its number of new tokens, or after a token in `stop_ids`. The others continue, and its row keeps
    running, unused, until the last prompt ends.

    In a `Step`, `n_new`, `n_keys` and `cache_length` count the row's tokens without padding;
    `seconds` is the time of the whole pass, shared by all rows; `flops` are the row's, including
    padding.
    Raises: ValueError before anything runs if there are no prompts, if a prompt or a number of new
    tokens would fail in `stream`, if a list doesn't have one value per prompt, or if the longest
    prompt plus the most new tokens, even from different rows, exceed the context.
    """
    vocab_size = model.config.vocab_size
    if isinstance(prompts, (str, bytes)) or not isinstance(prompts, Sequence):
        raise ValueError(f"prompts must be a list or a tuple, got {type(prompts).__name__}")
    if not prompts:
        raise ValueError("a batch needs at least 1 prompt, got 0")
    numbers = _broadcast("max_new_tokens", max_new_tokens, len(prompts))
    samplings = _broadcast("sampling", Sampling() if sampling is None else sampling, len(prompts))
    rows = []
    for number, (token_ids, n_new, chosen) in enumerate(
        zip(prompts, numbers, samplings, strict=True)
    ):
        try:
            ids = prompt_ids(token_ids, vocab_size)
            check_capacity(model.config, len(ids), n_new)
        except ValueError as error:
            raise ValueError(f"prompt {number}: {error}") from None
        rows.append(_Row(ids, n_new, chosen, torch.Generator().manual_seed(chosen.seed)))
    cache = model.new_cache(len(rows), _width(model, rows))
    check_cache(model.config, cache)
    return _passes(model, rows, cache, stop_set(stop_ids), hooks)


def generate_batch(
    model: Transformer,
    prompts: Sequence[Sequence[int] | Tensor],
    *,
    max_new_tokens: int | Sequence[int],
    sampling: Sampling | Sequence[Sampling] | None = None,
    stop_ids: Collection[int] = (),
    hooks: Hooks = NO_HOOKS,
) -> list[list[int]]:
    """Generate and return every prompt's new ids.

    Arguments and errors as in `stream_batch`.
    """
    passes = stream_batch(
        model,
        prompts,
        max_new_tokens=max_new_tokens,
        sampling=sampling,
        stop_ids=stop_ids,
        hooks=hooks,
    )
    rows = zip(*passes, strict=True)
    return [[step.token_id for step in row if step is not None] for row in rows]


@dataclass(frozen=True)
class _Row:
    """One prompt of a batch, and how its tokens are chosen."""

    prompt: list[int]
    max_new_tokens: int
    sampling: Sampling
    generator: torch.Generator


def _passes(
    model: Transformer,
    rows: Sequence[_Row],
    cache: KVCache,
    stop_ids: frozenset[int],
    hooks: Hooks,
) -> Iterator[tuple[Step | None, ...]]:
    """Run all prompts, then one token of every row per pass, until the last row ends."""
    device = next(model.parameters()).device
    longest = max(len(row.prompt) for row in rows)
    padding = torch.tensor([longest - len(row.prompt) for row in rows])[:, None]  # (B, 1)
    columns = torch.arange(cache.max_length)  # (S,)
    real = (columns >= padding).to(device)  # (B, S)
    positions = (columns - padding).clamp(min=0).to(device)  # (B, S); padding gets 0 and is hidden
    new = torch.tensor([[0] * (longest - len(row.prompt)) + row.prompt for row in rows])  # (B, T)
    equal = not padding.any()  # then no mask is needed
    running = [True] * len(rows)
    for end in range(longest, cache.max_length + 1):
        start = cache.length
        flops = forward_flops(model.config, end - start, cache.n_keys(end - start))
        logits, seconds, _ = timed_pass(
            model,
            new.to(device),
            cache=cache,
            positions=positions[:, start:end],
            attention_mask=None if equal else real[:, :end],
            hooks=hooks,
        )
        steps: list[Step | None] = [None] * len(rows)
        for number, row in enumerate(rows):
            if not running[number]:
                continue
            n_tokens = len(row.prompt) + end - longest
            token_id = sample(logits[number], row.sampling, row.generator)
            steps[number] = Step(
                kind="decode" if start else "prefill",
                token_id=token_id,
                logprob=float(torch.log_softmax(logits[number], dim=-1)[token_id]),
                seconds=seconds,
                n_new=1 if start else n_tokens,
                n_keys=n_tokens,
                cache_length=n_tokens,
                flops=flops,
                logits=logits[number],
            )
            n_generated = end - longest + 1
            running[number] = token_id not in stop_ids and n_generated < row.max_new_tokens
        yield tuple(steps)
        if not any(running):
            return
        # rows that have ended run token 0, and the result is ignored
        new = torch.tensor([[0 if step is None else step.token_id] for step in steps])


def _width(model: Transformer, rows: Sequence[_Row]) -> int:
    """The number of columns that the batch needs."""
    longest = max(len(row.prompt) for row in rows)
    most = max(row.max_new_tokens for row in rows)
    width, limit = longest + most - 1, model.config.context_length
    if width > limit:
        raise ValueError(
            f"the longest prompt has {longest} tokens and the most new tokens are {most}: together "
            f"they need {width} positions, but the context has {limit}"
        )
    return width


def _broadcast(name: str, value: Value | Sequence[Value], n_prompts: int) -> Sequence[Value]:
    """One value per prompt, from a single value or a sequence of that length."""
    if not isinstance(value, Sequence):
        return [value] * n_prompts
    if len(value) != n_prompts:
        raise ValueError(f"{n_prompts} prompts need {n_prompts} values of {name}, got {len(value)}")
    return value
