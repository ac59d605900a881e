"""A full cache: its error message, and three methods to continue the text anyway.

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
from attention_core.model.forward_pass import NO_HOOKS, Hooks
from attention_core.model.transformer import Transformer
from pages.kv_cache.inside_the_cache.experiment.recording_cache import (
    Access,
    RecordingCache,
    last_logits,
)


@dataclass(frozen=True)
class TextPass:
    """One step of a text that continues although its cache is full.

    position: position of the newest token. n_run: tokens in the pass. n_held: rows visible to the
    newest query. nbytes: allocated bytes. again: whether rows were dropped and recomputed.
    access: cache access, if the cache records it.
    """

    position: int
    n_run: int
    n_held: int
    nbytes: int
    flops: int
    logits: Tensor = field(repr=False)
    again: bool = False
    access: Access | None = None


@dataclass(frozen=True)
class LogitDrift:
    """The difference between logits and those with the full context.

    largest: largest absolute difference. divergence: Kullback-Leibler divergence from the full
    context, in nats. token_id: most likely token. same: whether the full context agrees.
    """

    largest: float
    divergence: float
    token_id: int
    same: bool


def drift(logits: Tensor, reference: Tensor) -> LogitDrift:
    """Compare logits (V) with those of the full context (V)."""
    token_id = int(logits.argmax())
    return LogitDrift(
        largest=float((logits - reference).abs().max()),
        divergence=float(divergence(reference, logits)),
        token_id=token_id,
        same=token_id == int(reference.argmax()),
    )


def refusal(
    model: Transformer, token_ids: Sequence[int], room: int, *, hooks: Hooks = NO_HOOKS
) -> str:
    """The error message of a cache whose `room` rows are too few for a text.

    Raises: ValueError if all the tokens fit.
    """
    _check_room(model, token_ids, 1, room)
    cache = model.new_cache(1, room, keep_all=True)
    last_logits(model, token_ids[:room], cache=cache, hooks=hooks)
    try:
        last_logits(model, token_ids[room : room + 1], cache=cache, hooks=hooks)
    except ValueError as error:
        return str(error)
    raise RuntimeError("a full cache accepted another token")


def start_again(
    model: Transformer,
    token_ids: Sequence[int],
    n_prompt: int,
    room: int,
    *,
    hooks: Hooks = NO_HOOKS,
) -> Iterator[TextPass]:
    """Run a text through a cache of `room` rows that is emptied whenever it's full.

    The last half of the tokens and the new one are then run again from position 0. The stored rows
    can't be kept, because they encode their old positions and what they saw of the dropped tokens.
    Yields one step per token; the first is the prompt.
    Raises: ValueError if the prompt doesn't fit, or the whole text does.
    """
    _check_room(model, token_ids, n_prompt, room)
    cache = RecordingCache.for_model(model, room, keep_all=True)
    for end in range(n_prompt, len(token_ids) + 1):
        start = 0 if end == n_prompt else end - 1
        again = end > n_prompt and cache.length == room
        if again:
            cache.reset()
            start = end - 1 - room // 2
        logits = last_logits(model, token_ids[start:end], cache=cache, hooks=hooks)
        n_run = end - start
        yield TextPass(
            position=end - 1,
            n_run=n_run,
            n_held=cache.length,
            nbytes=cache.nbytes,
            flops=forward_flops(model.config, n_run, cache.length),
            logits=logits,
            again=again,
            access=cache.accesses[-1],
        )


def slide(
    model: Transformer,
    token_ids: Sequence[int],
    n_prompt: int,
    cache: RecordingCache,
    *,
    hooks: Hooks = NO_HOOKS,
) -> Iterator[TextPass]:
    """Run a text through an empty ring: the prompt first, then one step per token.

    model: a model with a window (`model.reshape.windowed`); cache: an empty ring for it.
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
            n_held=cache.n_stored,
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


def keep_first(
    model: Transformer,
    token_ids: Sequence[int],
    n_prompt: int,
    room: int,
    n_first: int,
    *,
    hooks: Hooks = NO_HOOKS,
) -> Iterator[TextPass]:
    """Run a text whose queries see the first `n_first` tokens and the newest ones.

    At most `room` tokens are visible. This uses a mask over a cache with all rows, so every token
    keeps its position. Bytes are those of `room` rows, operations those of the visible rows.
    Source: StreamingLLM, https://arxiv.org/abs/2309.17453, which also renumbers the positions.
    Raises: ValueError as `start_again` does, or if `n_first` is outside 0 .. room - 1.
    """
    _check_room(model, token_ids, n_prompt, room)
    if not 0 <= n_first < room:
        raise ValueError(f"n_first must be 0 to {room - 1}, got {n_first}")
    cache = model.new_cache(1, len(token_ids), keep_all=True)
    for end in range(n_prompt, len(token_ids) + 1):
        start = 0 if end == n_prompt else end - 1
        visible = torch.ones(end, dtype=torch.long)
        visible[n_first : max(n_first, end - (room - n_first))] = 0
        logits = last_logits(model, token_ids[start:end], cache=cache, visible=visible, hooks=hooks)
        held = int(visible.sum())
        yield TextPass(
            position=end - 1,
            n_run=end - start,
            n_held=held,
            nbytes=cache.nbytes // len(token_ids) * room,
            flops=forward_flops(model.config, end - start, held),
            logits=logits,
        )


def _check_room(model: Transformer, token_ids: Sequence[int], n_prompt: int, room: int) -> None:
    if not 1 <= n_prompt <= room < len(token_ids) <= model.config.context_length:
        raise ValueError(
            f"a cache of {room} rows must fit the {n_prompt} prompt tokens and fewer than the "
            f"{len(token_ids)} tokens of the text, in a context of {model.config.context_length}"
        )
