"""A KV cache that is watched: what each pass of a generation wrote and read.

Nothing is predicted: a `RecordingCache` notes what its own `update` was given and what it handed
back, and a step's difference is between two passes that were run: one with the cache and one
without.

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
from attention_core.model.forward_pass import NO_HOOKS, Hooks
from attention_core.model.transformer import Transformer


@dataclass(frozen=True)
class Access:
    """What one forward pass did to a cache, all layers together.

    new: positions of the tokens that were run. written: those of them whose rows were stored (a
    ring keeps only the last). read: positions whose rows the attention was given, the new ones
    among them. n_rows: rows of the buffer; position p lies in row p modulo n_rows.
    bytes_written, bytes_read: of keys and values, summed over the layers.
    """

    new: range
    written: range
    read: range
    n_rows: int
    bytes_written: int
    bytes_read: int

    @property
    def rows_written(self) -> tuple[int, ...]:
        """Rows of the buffer that were written."""
        return tuple(position % self.n_rows for position in self.written)

    @property
    def rows_read(self) -> tuple[int, ...]:
        """Rows of the buffer whose content the attention was given, in the order of positions."""
        return tuple(position % self.n_rows for position in self.read)


class RecordingCache(SlidingCache):
    """A `SlidingCache` that notes every pass in `accesses`; otherwise the same, bit by bit.

    A pass counts when its last layer has written: one that is abandoned leaves no note.
    """

    def __init__(self, *sizes: int, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.accesses: list[Access] = []
        self._noted: list[Access] = []

    @classmethod
    def for_model(
        cls, model: Transformer, n_tokens: int, *, keep_all: bool = False
    ) -> RecordingCache:
        """The cache of `model.new_cache(1, n_tokens, keep_all=keep_all)`, but recording.

        Raises: ValueError as `new_cache` does.
        """
        cache = model.new_cache(1, n_tokens, keep_all=keep_all, cache_class=cls)
        assert isinstance(cache, cls)
        return cache

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """As `SlidingCache.update`, noting what was written and what is returned."""
        start = self.length
        keys, values = super().update(layer, k, v)
        end = start + k.shape[2]
        kept = min(k.shape[2], self.n_rows)
        row_bytes = (k[:, :, 0].numel() + v[:, :, 0].numel()) * keys.element_size()
        self._noted[layer:] = [
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
                    self._noted[-1],
                    bytes_written=sum(access.bytes_written for access in self._noted),
                    bytes_read=sum(access.bytes_read for access in self._noted),
                )
            )
        return keys, values

    def contents(self) -> tuple[Tensor, Tensor]:
        """Copies of the whole buffers as they lie in memory, rows that hold nothing included.

        Shapes: (L, H_kv, N, D) each, float32, on the CPU; the first sequence of the batch.
        """
        keys, values = (
            torch.stack([buffer[0] for buffer in buffers]).float().cpu() for buffers in self.buffers
        )
        return keys.clone(), values.clone()


@dataclass(frozen=True)
class CachedStep:
    """One token that was generated with the cache.

    token_id: chosen with the cache, likeliest first. seconds: of that pass, the model call alone.
    nbytes, nbytes_used: of the cache after the pass. logits: (V), float32, of that pass.
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
    """The same token, and what the model says without a cache.

    logits: (V), float32, of the pass without a cache; those of the other are not kept.
    uncached_token_id: what they choose. difference: of the two rows of logits, largest absolute.
    uncached_rows, uncached_flops: the tokens that this step would run without a cache, and what
    they cost.
    """

    uncached_token_id: int
    uncached_rows: int
    uncached_flops: int
    difference: float


def observe(
    model: Transformer,
    token_ids: Sequence[int],
    cache: RecordingCache,
    *,
    max_new_tokens: int,
    stop_ids: Collection[int] = (),
    hooks: Hooks = NO_HOOKS,
) -> Iterator[CachedStep]:
    """Generate greedily with an empty cache; a step a token.

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
    """Run the prompt and the generated text once more without a cache, and compare every step.

    One pass is enough for all steps: the causal mask hides later tokens, so the row of a token is
    what a pass over the text up to there computes. Both rows of logits of a step must agree but
    for rounding.
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
    """Logits (V) behind the last of these tokens, float32, on the CPU.

    visible: (S), 0 for keys that no query may see; every token keeps its position.
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
    """Logits (T, V) of these tokens, float32, on the CPU; the options are those of the model."""
    ids = torch.tensor([list(token_ids)], device=next(model.parameters()).device)
    with torch.inference_mode():
        output = model(ids, **options)
    if output.logits is None:
        raise ValueError("this model has no output matrix: it has no logits")
    logits: Tensor = output.logits[0].float().cpu()
    return logits
