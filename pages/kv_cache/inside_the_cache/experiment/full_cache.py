"""A full cache: its error message, and three ways to continue the text anyway.

Each method really runs the same text, one step per token, so its logits can be compared with those
of the full context. Dimension letters: S keys, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from attention_core.analysis.distances import divergence
from attention_core.costs.formulas import forward_flops
from attention_core.model.pass_context import NO_HOOKS, Hooks
from attention_core.model.transformer import Transformer
from pages.kv_cache.inside_the_cache.experiment.recording_cache import (
    Access,
    RecordingCache,
    last_logits,
)


@dataclass(frozen=True)
class TextPass:
    """One step of a text that continues although its cache is full.

    position: position of the newest token. n_run: tokens in the pass. n_visible: rows visible to
    the newest query. nbytes: allocated bytes. is_recomputed: whether rows were dropped and
    recomputed. access: cache access, if the cache records it.
    """

    position: int
    n_run: int
    n_visible: int
    nbytes: int
    flops: int
    logits: Tensor = field(repr=False)
    is_recomputed: bool = False
    access: Access | None = None


@dataclass(frozen=True)
class LogitDrift:
    """The difference between logits and those with the full context.

    largest: largest absolute difference. divergence: Kullback-Leibler divergence from the full
    context, in nats. token_id: most likely token. same_token: whether the full context agrees.
    """

    largest: float
    divergence: float
    token_id: int
    same_token: bool


def drift(logits: Tensor, reference: Tensor) -> LogitDrift:
    """Compare logits (V) with those of the full context (V)."""
    token_id = int(logits.argmax())
    return LogitDrift(
        largest=float((logits - reference).abs().max()),
        divergence=float(divergence(reference, logits)),
        token_id=token_id,
        same_token=token_id == int(reference.argmax()),
    )


def capacity_error(
    model: Transformer, token_ids: Sequence[int], capacity: int, *, hooks: Hooks = NO_HOOKS
) -> str:
    """The error message of a cache whose `capacity` rows are too few for a text.

    Raises: ValueError if all the tokens fit.
    """
    _check_capacity(model, token_ids, 1, capacity)
    cache = model.new_cache(1, capacity, keep_all=True)
    last_logits(model, token_ids[:capacity], cache=cache, hooks=hooks)
    try:
        last_logits(model, token_ids[capacity : capacity + 1], cache=cache, hooks=hooks)
    except ValueError as error:
        return str(error)
    raise RuntimeError("a full cache accepted another token")


def run_with_restarts(
    model: Transformer,
    token_ids: Sequence[int],
    n_prompt: int,
    capacity: int,
    *,
    hooks: Hooks = NO_HOOKS,
) -> Iterator[TextPass]:
    """Run a text through a cache of `capacity` rows that is emptied whenever it's full.

    The last half of the tokens and the new one are then run again from position 0. The stored rows
    can't be kept, because they encode their old positions and information from the dropped tokens.
    Yields one step per token; the first is the prompt.
    Raises: ValueError if the prompt doesn't fit, or the whole text does.
    """
    _check_capacity(model, token_ids, n_prompt, capacity)
    cache = RecordingCache.for_model(model, capacity, keep_all=True)
    for end in range(n_prompt, len(token_ids) + 1):
        start = 0 if end == n_prompt else end - 1
        again = end > n_prompt and cache.length == capacity
        if again:
            cache.reset()
            start = end - 1 - capacity // 2
        logits = last_logits(model, token_ids[start:end], cache=cache, hooks=hooks)
        n_run = end - start
        yield TextPass(
            position=end - 1,
            n_run=n_run,
            n_visible=cache.length,
            nbytes=cache.nbytes,
            flops=forward_flops(model.config, n_run, cache.length),
            logits=logits,
            is_recomputed=again,
            access=cache.accesses[-1],
        )


def run_ring(
    model: Transformer,
    token_ids: Sequence[int],
    n_prompt: int,
    cache: RecordingCache,
    *,
    hooks: Hooks = NO_HOOKS,
) -> Iterator[TextPass]:
    """Run a text through an empty ring: the prompt first, then one step per token.

    model: a model with a window (`model.reshape.with_window`); cache: an empty ring for it.
    Source: sliding-window attention with a rolling buffer, Mistral 7B,
    https://arxiv.org/abs/2310.06825, section 2.
    """
    for end in range(n_prompt, len(token_ids) + 1):
        start = 0 if end == n_prompt else end - 1
        n_keys = cache.n_keys(end - start)
        logits = last_logits(model, token_ids[start:end], cache=cache, hooks=hooks)
        yield TextPass(
            position=end - 1,
            n_run=end - start,
            n_visible=cache.n_stored,
            nbytes=cache.nbytes,
            flops=forward_flops(model.config, end - start, n_keys),
            logits=logits,
            access=cache.accesses[-1],
        )


def ring_positions(length: int, n_rows: int) -> tuple[int | None, ...]:
    """The position in each row of a ring after `length` tokens; None if it's empty.

    Raises: ValueError for a size out of range.
    """
    if length < 0 or n_rows < 1:
        raise ValueError(f"a ring of {n_rows} rows cannot hold {length} tokens")
    newest = length - 1
    last = (newest - (newest - row) % n_rows for row in range(n_rows))
    return tuple(position if position >= 0 else None for position in last)


def run_with_sink(
    model: Transformer,
    token_ids: Sequence[int],
    n_prompt: int,
    capacity: int,
    n_first: int,
    *,
    hooks: Hooks = NO_HOOKS,
) -> Iterator[TextPass]:
    """Run a text whose queries see the first `n_first` tokens and the newest ones.

    At most `capacity` tokens are visible. This uses a mask over a cache with all rows, so every
    token keeps its position. Bytes are those of `capacity` rows, operations those of the visible
    rows.
    Source: StreamingLLM, https://arxiv.org/abs/2309.17453, which also renumbers the positions.
    Raises: ValueError as `run_with_restarts` does, or if `n_first` is outside 0 .. capacity - 1.
    """
    _check_capacity(model, token_ids, n_prompt, capacity)
    if not 0 <= n_first < capacity:
        raise ValueError(f"n_first must be 0 to {capacity - 1}, got {n_first}")
    cache = model.new_cache(1, len(token_ids), keep_all=True)
    for end in range(n_prompt, len(token_ids) + 1):
        start = 0 if end == n_prompt else end - 1
        visible = torch.ones(end, dtype=torch.long)
        visible[n_first : max(n_first, end - (capacity - n_first))] = 0
        logits = last_logits(model, token_ids[start:end], cache=cache, visible=visible, hooks=hooks)
        held = int(visible.sum())
        yield TextPass(
            position=end - 1,
            n_run=end - start,
            n_visible=held,
            nbytes=cache.nbytes // len(token_ids) * capacity,
            flops=forward_flops(model.config, end - start, held),
            logits=logits,
        )


def _check_capacity(
    model: Transformer, token_ids: Sequence[int], n_prompt: int, capacity: int
) -> None:
    if not 1 <= n_prompt <= capacity < len(token_ids) <= model.config.context_length:
        raise ValueError(
            f"a cache of {capacity} rows must fit the {n_prompt} prompt tokens and fewer than the "
            f"{len(token_ids)} tokens of the text, in a context of {model.config.context_length}"
        )
