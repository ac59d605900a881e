"""A KV cache that is watched: what each pass wrote and read, what `crop` leaves, what full means.

Nothing is predicted: a `RecordingCache` is a `KVCache` that notes what its own `update` was given
and what it handed back, and every comparison here is between two passes that were run.

Dimension letters: L layers, H_kv key/value heads, N rows of the buffer, D size of a row, V
vocabulary, P prompt tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from attention_core.cache import KVCache
from attention_core.generation import stream
from attention_core.memory import forward_flops
from attention_core.transformer import Transformer

OnLayer = Callable[[int], None] | None


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


class RecordingCache(KVCache):
    """A `KVCache` that notes every pass in `accesses`; otherwise the same, bit by bit.

    A pass counts when its last layer has written: one that is abandoned leaves no note.
    """

    def __init__(self, *sizes: int, **options: object) -> None:
        super().__init__(*sizes, **options)  # type: ignore[arg-type]
        self.accesses: list[Access] = []
        self._noted: list[Access] = []

    @classmethod
    def for_model(
        cls, model: Transformer, n_tokens: int, *, keep_all: bool = False
    ) -> RecordingCache:
        """What `model.new_cache(1, n_tokens, keep_all=keep_all)` makes, recording.

        Raises: ValueError as `new_cache` does.
        """
        like = model.new_cache(1, n_tokens, keep_all=keep_all)
        keys, values = like._keys[0], like._values[0]
        return cls(
            like.n_layers,
            1,
            n_tokens,
            key_shape=(keys.shape[1], keys.shape[3]),
            value_shape=(values.shape[1], values.shape[3]),
            window=like.window,
            dtype=keys.dtype,
            device=keys.device,
        )

    @property
    def n_rows(self) -> int:
        """N, the rows of every buffer: `max_length`, or the window if that is less."""
        return self._n_rows

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """As `KVCache.update`, noting what was written and what is returned."""
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
            torch.stack([buffer[0] for buffer in buffers]).float().cpu()
            for buffers in (self._keys, self._values)
        )
        return keys.clone(), values.clone()


@dataclass(frozen=True)
class CacheStep:
    """One generated token, with the cache and without it.

    token_id: chosen with the cache, likeliest first. uncached_token_id: what a pass over the whole
    text without a cache chooses. difference: between the logits of the two, largest absolute.
    nbytes, nbytes_used: of the cache after the pass. uncached_rows: tokens that the pass without a
    cache runs. logits: (V), float32, of the pass without a cache.
    """

    kind: Literal["prefill", "decode"]
    token_id: int
    access: Access
    nbytes: int
    nbytes_used: int
    flops: int
    uncached_token_id: int
    uncached_rows: int
    uncached_flops: int
    difference: float
    logits: Tensor = field(repr=False)


def observe(
    model: Transformer,
    token_ids: Sequence[int],
    cache: RecordingCache,
    *,
    max_new_tokens: int,
    stop_ids: Collection[int] = (),
    on_layer: OnLayer = None,
) -> Iterator[CacheStep]:
    """Generate greedily with an empty cache, and run every step's text again without one.

    Both passes of a step see the same text, so their logits must agree but for rounding.
    Raises: ValueError as `stream` does.
    """
    text = list(token_ids)
    for step in stream(
        model,
        token_ids,
        max_new_tokens=max_new_tokens,
        cache=cache,
        stop_ids=stop_ids,
        on_layer=on_layer,
    ):
        logits = last_logits(model, text, on_layer=on_layer)
        yield CacheStep(
            kind=step.kind,
            token_id=step.token_id,
            access=cache.accesses[-1],
            nbytes=cache.nbytes,
            nbytes_used=cache.nbytes_used,
            flops=step.flops,
            uncached_token_id=int(logits.argmax()),
            uncached_rows=len(text),
            uncached_flops=forward_flops(model.config, len(text), len(text)),
            difference=float((step.logits - logits).abs().max()),
            logits=logits,
        )
        text.append(step.token_id)


def last_logits(
    model: Transformer,
    token_ids: Sequence[int],
    *,
    cache: KVCache | None = None,
    visible: Tensor | None = None,
    on_layer: OnLayer = None,
) -> Tensor:
    """Logits (V) behind the last of these tokens, float32, on the CPU.

    visible: (S), 0 for keys that no query may see. Raises: ValueError as the model does.
    """
    ids = torch.tensor([list(token_ids)], device=next(model.parameters()).device)
    mask = None if visible is None else visible[None].to(ids.device)
    with torch.inference_mode():
        output = model(ids, cache=cache, attention_mask=mask, last_only=True, on_layer=on_layer)
    if output.logits is None:
        raise ValueError("this model has no output matrix: it has no logits")
    logits: Tensor = output.logits[0, -1].float().cpu()
    return logits.clone()


# ---- crop


@dataclass(frozen=True)
class Continued:
    """A cache that was cropped and continued with other tokens.

    before, cropped, after: the whole buffers of keys and values, (L, H_kv, N, D), before the crop,
    after it, and after the new tokens have run. n_before, n_kept, n_after: their lengths. nbytes:
    allocated, the same all the time. used: bytes that hold stored tokens at the three moments.
    access: of the pass over the new tokens.
    difference: the largest between its logits and those of a fresh pass over the whole text
    without a cache, for all new tokens. next_id, fresh_id: the likeliest next token of each.
    """

    before: tuple[Tensor, Tensor]
    cropped: tuple[Tensor, Tensor]
    after: tuple[Tensor, Tensor]
    n_before: int
    n_kept: int
    n_after: int
    nbytes: int
    used: tuple[int, int, int]
    access: Access
    difference: float
    next_id: int
    fresh_id: int
    flops: int
    fresh_flops: int


def crop_and_continue(
    model: Transformer,
    token_ids: Sequence[int],
    rows: tuple[Tensor, Tensor],
    n_kept: int,
    new_ids: Sequence[int],
    *,
    on_layer: OnLayer = None,
) -> Continued:
    """Crop a cache to `n_kept` tokens, run other tokens behind them, and compare with a fresh run.

    token_ids: the tokens whose rows are stored. rows: their keys and values, (L, H_kv, N, D), as
    `contents` gives them; they are put into a new cache, larger where the new tokens need it.
    Raises: ValueError for nothing kept, nothing new, or more than the context holds.
    """
    n_before = len(token_ids)
    if not 1 <= n_kept <= n_before:
        raise ValueError(f"cannot crop a cache of {n_before} tokens to {n_kept}")
    if not new_ids:
        raise ValueError("there is no token to continue with")
    cache = RecordingCache.for_model(
        model, max(rows[0].shape[2], n_kept + len(new_ids)), keep_all=True
    )
    weight = next(model.parameters())
    for layer in range(cache.n_layers):
        keys, values = (
            one[layer, None, :, :n_before].to(weight.device, weight.dtype) for one in rows
        )
        cache.update(layer, keys, values)
    before, used = cache.contents(), [cache.nbytes_used]
    cache.crop(n_kept)
    cropped = cache.contents()
    used.append(cache.nbytes_used)
    whole = [*token_ids[:n_kept], *new_ids]
    with torch.inference_mode():
        new = torch.tensor([list(new_ids)], device=weight.device)
        reused = model(new, cache=cache, on_layer=on_layer).logits
        fresh = model(torch.tensor([whole], device=weight.device), on_layer=on_layer).logits
    one, other = (logits[0, -len(new_ids) :].float().cpu() for logits in (reused, fresh))
    return Continued(
        before=before,
        cropped=cropped,
        after=cache.contents(),
        n_before=n_before,
        n_kept=n_kept,
        n_after=cache.length,
        nbytes=cache.nbytes,
        used=(used[0], used[1], cache.nbytes_used),
        access=cache.accesses[-1],
        difference=float((one - other).abs().max()),
        next_id=int(one[-1].argmax()),
        fresh_id=int(other[-1].argmax()),
        flops=forward_flops(model.config, len(new_ids), len(whole), n_logits=len(new_ids)),
        fresh_flops=forward_flops(model.config, len(whole), len(whole), n_logits=len(whole)),
    )


# ---- a full cache


@dataclass(frozen=True)
class Pass:
    """One step of a text that is run on although its cache is full.

    position: of the newest token. n_run: tokens that the pass ran. n_held: rows that its newest
    query could see. nbytes: allocated. again: whether rows were thrown away and computed again.
    access: where a recording cache took part.
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
class Drift:
    """How far logits are from those with the full context.

    largest: absolute difference. divergence: Kullback-Leibler, full context against this, in nats.
    token_id: the likeliest token here. same: whether the full context finds the same.
    """

    largest: float
    divergence: float
    token_id: int
    same: bool


def drift(logits: Tensor, reference: Tensor) -> Drift:
    """Compare logits (V) with those of the full context (V)."""
    log_p, log_q = (torch.log_softmax(one.double(), -1) for one in (reference, logits))
    token_id = int(logits.argmax())
    return Drift(
        largest=float((logits - reference).abs().max()),
        divergence=max(0.0, float((log_p.exp() * (log_p - log_q)).sum())),
        token_id=token_id,
        same=token_id == int(reference.argmax()),
    )


def refusal(
    model: Transformer, token_ids: Sequence[int], room: int, *, on_layer: OnLayer = None
) -> str:
    """What the cache says when a text does not fit its `room` rows: the message of its error.

    Raises: ValueError if all the tokens fit.
    """
    _check_room(model, token_ids, 1, room)
    cache = model.new_cache(1, room, keep_all=True)
    last_logits(model, token_ids[:room], cache=cache, on_layer=on_layer)
    try:
        last_logits(model, token_ids[room : room + 1], cache=cache, on_layer=on_layer)
    except ValueError as error:
        return str(error)
    raise RuntimeError("a full cache took another token")


def start_again(
    model: Transformer,
    token_ids: Sequence[int],
    n_prompt: int,
    room: int,
    *,
    on_layer: OnLayer = None,
) -> Iterator[Pass]:
    """Run a text through a cache of `room` rows that is emptied whenever it is full.

    The last half of the tokens and the new one are then run again, from position 0 on: the stored
    rows cannot be kept, for they hold their old positions and what they saw of the tokens that are
    now gone. One step a token; the first is the prompt's.
    Raises: ValueError where the prompt does not fit, or the text fits as it is.
    """
    _check_room(model, token_ids, n_prompt, room)
    cache = RecordingCache.for_model(model, room, keep_all=True)
    for end in range(n_prompt, len(token_ids) + 1):
        start = 0 if end == n_prompt else end - 1
        again = end > n_prompt and cache.length == room
        if again:
            cache.reset()
            start = end - 1 - room // 2
        logits = last_logits(model, token_ids[start:end], cache=cache, on_layer=on_layer)
        n_run = end - start
        yield Pass(
            position=end - 1,
            n_run=n_run,
            n_held=cache.length,
            nbytes=cache.nbytes,
            flops=forward_flops(model.config, n_run, cache.length),
            logits=logits,
            again=again,
            access=cache.accesses[-1],
        )


def windowed(model: Transformer, window: int) -> Transformer:
    """The same weights, shared and not copied, in a model whose queries see `window` keys."""
    with torch.device("meta"):
        other = Transformer(replace(model.config, window=window))
    other.load_state_dict(model.state_dict(), assign=True)
    return other.eval().requires_grad_(False)


def slide(
    model: Transformer,
    token_ids: Sequence[int],
    n_prompt: int,
    cache: RecordingCache,
    *,
    on_layer: OnLayer = None,
) -> Iterator[Pass]:
    """Run a text through an empty ring: a step a token, the prompt first.

    model: one with a window (`windowed`); cache: a ring of its own.
    Source: sliding-window attention with a rolling buffer, Mistral 7B,
    https://arxiv.org/abs/2310.06825, section 2.
    """
    for end in range(n_prompt, len(token_ids) + 1):
        start = 0 if end == n_prompt else end - 1
        n_keys = cache.n_keys(end - start)
        logits = last_logits(model, token_ids[start:end], cache=cache, on_layer=on_layer)
        yield Pass(
            position=end - 1,
            n_run=end - start,
            n_held=cache.n_stored,
            nbytes=cache.nbytes,
            flops=forward_flops(model.config, end - start, n_keys),
            logits=logits,
            access=cache.accesses[-1],
        )


def ring_positions(length: int, n_rows: int) -> tuple[int | None, ...]:
    """Which position lies in each row of a ring after `length` tokens; None: none yet.

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
    on_layer: OnLayer = None,
) -> Iterator[Pass]:
    """Run a text whose queries see the first `n_first` tokens and the last `room - n_first`.

    Measured with a mask over a cache that keeps all rows, so every token keeps its position; bytes
    and operations are counted for the `room` rows that are seen.
    Source: StreamingLLM, https://arxiv.org/abs/2309.17453, which also renumbers the positions.
    Raises: ValueError as `start_again` does, or for `n_first` outside 0 .. room - 1.
    """
    _check_room(model, token_ids, n_prompt, room)
    if not 0 <= n_first < room:
        raise ValueError(f"n_first must be 0 to {room - 1}, got {n_first}")
    cache = model.new_cache(1, len(token_ids), keep_all=True)
    for end in range(n_prompt, len(token_ids) + 1):
        start = 0 if end == n_prompt else end - 1
        visible = torch.ones(end, dtype=torch.long)
        visible[n_first : max(n_first, end - (room - n_first))] = 0
        logits = last_logits(
            model, token_ids[start:end], cache=cache, visible=visible, on_layer=on_layer
        )
        held = int(visible.sum())
        yield Pass(
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
            f"a room of {room} must hold the {n_prompt} tokens of the prompt and less than the "
            f"{len(token_ids)} of the text, in a context of {model.config.context_length}"
        )
