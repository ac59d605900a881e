"""A KV cache that records what each pass of a generation wrote and read.

All values are measured: a `RecordingCache` records the arguments and results of its own `update`,
and a step's difference compares two real passes, one with the cache and one without.

Dimension letters: L layers, H_kv key/value heads, N rows of the buffer, D size of a row, V
vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from attention_core.cache import KVCache, SlidingCache
from attention_core.costs.formulas import forward_flops
from attention_core.generation import stream
from attention_core.model.pass_context import NO_HOOKS, Hooks
from attention_core.model.transformer import Transformer


@dataclass(frozen=True)
class Access:
    """What one forward pass wrote to and read from a cache.

    new: positions of the tokens in the pass. written: the new positions whose rows were stored (a
    ring keeps only the last ones). read: positions passed to attention, including the new ones.
    n_rows: rows of the buffer; position p is in row p modulo n_rows.
    bytes_written, bytes_read: bytes of keys and values, summed over the layers.
    """

    new: range
    written: range
    read: range
    n_rows: int
    bytes_written: int
    bytes_read: int

    @property
    def rows_written(self) -> tuple[int, ...]:
        """The buffer rows that were written."""
        return tuple(position % self.n_rows for position in self.written)

    @property
    def rows_read(self) -> tuple[int, ...]:
        """The buffer rows that attention read, ordered by position."""
        return tuple(position % self.n_rows for position in self.read)


class RecordingCache(SlidingCache):
    """A `SlidingCache` that records every pass in `accesses`, with identical results.

    A pass is recorded once its last layer has written, so an aborted pass isn't.
    """

    def __init__(self, *sizes: int, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.accesses: list[Access] = []
        self._pending_access: list[Access] = []

    @classmethod
    def for_model(
        cls, model: Transformer, n_tokens: int, *, keep_all: bool = False
    ) -> RecordingCache:
        """A recording version of `model.new_cache(1, n_tokens, keep_all=keep_all)`.

        Raises: ValueError as `new_cache` does.
        """
        cache = model.new_cache(1, n_tokens, keep_all=keep_all, cache_class=cls)
        assert isinstance(cache, cls)
        return cache

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Call `SlidingCache.update` and record what it writes and returns."""
        start = self.length
        keys, values = super().update(layer, k, v)
        end = start + k.shape[2]
        kept = min(k.shape[2], self.n_rows)
        row_bytes = (k[:, :, 0].numel() + v[:, :, 0].numel()) * keys.element_size()
        self._pending_access[layer:] = [
            Access(
                new=range(start, end),
                written=range(end - kept, end),
                read=range(end - keys.shape[2], end),
                n_rows=self.n_rows,
                bytes_written=kept * row_bytes,
                bytes_read=keys.shape[2] * row_bytes,
            )
        ]
        if layer == self.n_layers - 1:
            self.accesses.append(
                replace(
                    self._pending_access[-1],
                    bytes_written=sum(access.bytes_written for access in self._pending_access),
                    bytes_read=sum(access.bytes_read for access in self._pending_access),
                )
            )
        return keys, values

    def contents(self) -> tuple[Tensor, Tensor]:
        """Copies of the whole buffers in memory order, including empty rows.

        Shapes: (L, H_kv, N, D) each, float32, on the CPU; the first sequence of the batch.
        """
        keys, values = (
            torch.stack([buffer[0] for buffer in buffers]).float().cpu() for buffers in self.buffers
        )
        return keys.clone(), values.clone()


@dataclass(frozen=True)
class CachedStep:
    """One token generated with the cache.

    token_id: the most likely token. seconds: time of the model call. nbytes, nbytes_used: cache
    bytes after the pass. logits: (V), float32, of that pass.
    """

    kind: Literal["prefill", "decode"]
    token_id: int
    seconds: float
    access: Access
    nbytes: int
    nbytes_used: int
    flops: int
    logits: Tensor = field(repr=False)


@dataclass(frozen=True)
class CacheStep(CachedStep):
    """A cached step, compared with the pass without a cache.

    logits: (V), float32, from the pass without a cache; those of the cached pass aren't stored.
    uncached_token_id: most likely token without a cache. difference: largest absolute difference
    of the two rows of logits. uncached_rows, uncached_flops: number of tokens that this step would
    run without a cache, and their operations.
    """

    uncached_token_id: int
    uncached_rows: int
    uncached_flops: int
    difference: float


def record_steps(
    model: Transformer,
    token_ids: Sequence[int],
    cache: RecordingCache,
    *,
    max_new_tokens: int,
    stop_ids: Collection[int] = (),
    hooks: Hooks = NO_HOOKS,
) -> Iterator[CachedStep]:
    """Generate greedily with an empty cache, one step per token.

    Raises: ValueError as `stream` does.
    """
    for step in stream(
        model,
        token_ids,
        max_new_tokens=max_new_tokens,
        cache=cache,
        stop_ids=stop_ids,
        hooks=hooks,
    ):
        yield CachedStep(
            kind=step.kind,
            token_id=step.token_id,
            seconds=step.seconds,
            access=cache.accesses[-1],
            nbytes=cache.nbytes,
            nbytes_used=cache.nbytes_used,
            flops=step.flops,
            logits=step.logits,
        )


def compare_with_one_pass(
    model: Transformer,
    token_ids: Sequence[int],
    steps: Sequence[CachedStep],
    *,
    hooks: Hooks = NO_HOOKS,
) -> tuple[CacheStep, ...]:
    """Run the whole text once more without a cache and compare every step.

    One pass is enough for all steps: the causal mask hides later tokens, so each row equals the
    last row of a pass over the text up to that token. The two rows of logits of a step must agree
    except for rounding.
    """
    text = [*token_ids, *(step.token_id for step in steps[:-1])]
    rows = _logits(model, text, hooks=hooks)[-len(steps) :].clone()
    lengths = range(len(token_ids), len(text) + 1)
    return tuple(
        CacheStep(
            **(vars(step) | {"logits": logits}),
            uncached_token_id=int(logits.argmax()),
            uncached_rows=length,
            uncached_flops=forward_flops(model.config, length, length),
            difference=float((step.logits - logits).abs().max()),
        )
        for step, logits, length in zip(steps, rows, lengths, strict=True)
    )


def last_logits(
    model: Transformer,
    token_ids: Sequence[int],
    *,
    cache: KVCache | None = None,
    visible: Tensor | None = None,
    hooks: Hooks = NO_HOOKS,
) -> Tensor:
    """Logits (V) after the last of these tokens, float32, on the CPU.

    visible: (S), 0 for keys hidden from all queries; every token keeps its position.
    Raises: ValueError as the model does.
    """
    options: dict[str, Any] = {"cache": cache, "hooks": hooks}
    if visible is not None:
        device = next(model.parameters()).device
        columns = torch.arange(len(visible), device=device)
        options["attention_mask"] = visible[None].to(device)
        options["positions"] = columns[None, -len(token_ids) :]
    return _logits(model, token_ids, last_only=True, **options)[-1].clone()


def _logits(model: Transformer, token_ids: Sequence[int], **options: Any) -> Tensor:
    """Logits (T, V) of these tokens, float32, on the CPU; options go to the model."""
    ids = torch.tensor([list(token_ids)], device=next(model.parameters()).device)
    with torch.inference_mode():
        output = model(ids, **options)
    if output.logits is None:
        raise ValueError("this model has no output matrix, so it has no logits")
    logits: Tensor = output.logits[0].float().cpu()
    return logits
