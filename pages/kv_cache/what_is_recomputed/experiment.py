"""What generation recomputes without a KV cache, and why keys and values suffice.

A text grows by one token per step. Each step really runs twice: the whole text without a cache, and
only the newest token with one. The first pass shows which entries were already computed one step
before. The second shows that the last row doesn't need them to be recomputed.

Dimension letters: L layers, H query heads, H_kv key/value heads, D head size, C width, V
vocabulary, P prompt tokens, T tokens of a step, A stored columns of the logits.
Source: course notes, "KV cache": the boxes, the last row of the logits, and tracing it back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from attention_core.attend import AttentionRecord, attend
from attention_core.cache import KVCache
from attention_core.masks import causal_mask
from attention_core.model.config import TransformerConfig
from attention_core.model.pass_context import NO_HOOKS, Hooks
from attention_core.model.transformer import Transformer

QUERIES, KEYS, VALUES = "queries", "keys", "values"
SCORES, WEIGHTS, CONTEXT = "scores", "weights", "context"
OUT, FEED_FORWARD, LOGITS = "output projection", "feed-forward", "logits"

Scope = Literal["head", "layer", "model"]


@dataclass(frozen=True)
class Matrices:
    """The matrices of one pass in every layer and head, float32, on the CPU.

    T rows were run against S keys; T = S without a cache. `scores` are q . k before scale and
    mask, so they include the part above the diagonal.
    """

    q: Tensor  # (L, H, T, D)
    k: Tensor  # (L, H_kv, S, D)
    v: Tensor  # (L, H_kv, S, D)
    scores: Tensor  # (L, H, T, S)
    weights: Tensor  # (L, H, T, S)
    context: Tensor  # (L, H, T, D)

    @property
    def parts(self) -> dict[str, Tensor]:
        """The six matrices by name, in the order of computation."""
        return {
            QUERIES: self.q, KEYS: self.k, VALUES: self.v,
            SCORES: self.scores, WEIGHTS: self.weights, CONTEXT: self.context,
        }  # fmt: skip

    @property
    def nbytes(self) -> int:
        """Bytes of all six matrices."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.parts.values())

    def head(self, layer: int, head: int) -> dict[str, Tensor]:
        """The six matrices of one query head, (T or S, D or S); its keys may be shared.

        Raises: ValueError for a layer or head that doesn't exist.
        """
        n_layers, n_heads = self.q.shape[:2]
        if not 0 <= layer < n_layers or not 0 <= head < n_heads:
            raise ValueError(
                f"there are {n_layers} layers of {n_heads} heads, not layer {layer}, head {head}"
            )
        shared = n_heads // self.k.shape[1]  # query heads per key/value head
        return {
            name: of_layers[layer, head // shared if name in (KEYS, VALUES) else head]
            for name, of_layers in self.parts.items()
        }


@dataclass(frozen=True)
class GrownStep:
    """One step: the whole text without a cache, and its newest tokens with one.

    n_tokens: T. n_before: how many of them an earlier step ran (0 in the first step).
    full: the pass without a cache. cached: the pass with one, T - n_before rows against T keys.
    top_ids: (A), the most likely next tokens. top_logits: (T, A), their logits in every row of the
    pass without a cache; cached_logits: (A), in the last row of the cached pass.
    likeliest_ids: (T), what each row of `full` predicts; likeliest: (T), its probability.
    cache_difference: largest absolute difference of the two last rows of logits, over all V;
    largest_logit: largest absolute logit, for comparison.
    """

    n_tokens: int
    n_before: int
    full: Matrices
    cached: Matrices
    top_ids: Tensor
    top_logits: Tensor
    cached_logits: Tensor
    likeliest_ids: Tensor
    likeliest: Tensor
    cache_difference: float
    largest_logit: float

    @property
    def token_id(self) -> int:
        """The most likely next token, which the next step adds to the text."""
        return int(self.likeliest_ids[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of the matrices."""
        return self.full.nbytes + self.cached.nbytes


def bytes_needed(config: TransformerConfig, n_prompt: int, n_steps: int) -> int:
    """Bytes needed for the matrices of all steps of `grow`."""

    def matrices(n_rows: int, n_keys: int) -> int:
        rows = config.n_heads * n_rows * (2 * config.d_head + 2 * n_keys)
        return 4 * config.n_layers * (rows + 2 * config.kv_heads * n_keys * config.d_head)

    ends = range(n_prompt, n_prompt + n_steps)
    return sum(matrices(end, end) + matrices(end if end == n_prompt else 1, end) for end in ends)


def grow(
    model: Transformer,
    token_ids: Sequence[int],
    *,
    n_steps: int,
    n_columns: int = 8,
    hooks: Hooks = NO_HOOKS,
) -> Iterator[GrownStep]:
    """Yield the steps of a greedy generation, each run without a cache and with one.

    Both get the most likely token of the pass without a cache. The `hooks` are passed to every
    forward pass.
    Raises: ValueError, before anything runs, for an empty text, a model that can't generate or has
    latent attention (which doesn't cache keys and values), `n_steps` below 1, `n_columns`
    outside 1 .. V, or more tokens than the context allows.
    """
    config = model.config
    _check_kind(config)
    if not token_ids or n_steps < 1:
        raise ValueError(
            f"got {len(token_ids)} tokens and {n_steps} steps; both must be at least 1"
        )
    if not 1 <= n_columns <= config.vocab_size:
        raise ValueError(f"n_columns must be 1 to {config.vocab_size}, got {n_columns}")
    n_run = len(token_ids) + n_steps - 1
    if n_run > config.context_length:
        raise ValueError(f"{n_run} tokens exceed the context length of {config.context_length}")
    return _grow(model, list(token_ids), n_steps, n_columns, hooks)


def _grow(
    model: Transformer,
    ids: list[int],
    n_steps: int,
    n_columns: int,
    hooks: Hooks,
) -> Iterator[GrownStep]:
    cache = model.new_cache(1, len(ids) + n_steps - 1, keep_all=True)
    for _ in range(n_steps):
        step = _step(model, ids, cache, n_columns, hooks)
        ids = [*ids, step.token_id]
        yield step


def _step(
    model: Transformer,
    ids: list[int],
    cache: KVCache,
    n_columns: int,
    hooks: Hooks,
) -> GrownStep:
    n_before = cache.length
    # inference mode must not leak to the caller between two steps
    with torch.inference_mode():
        tokens = torch.tensor([ids], device=next(model.parameters()).device)
        full = model(tokens, record=True, hooks=hooks)
        cached = model(tokens[:, n_before:], cache=cache, record=True, hooks=hooks)
        logits, last = full.logits[0].float().cpu(), cached.logits[0, -1].float().cpu()
        top = logits[-1].topk(n_columns).indices
        likeliest = logits.softmax(-1).max(-1)
        return GrownStep(
            n_tokens=len(ids),
            n_before=n_before,
            full=matrices(full.records),
            cached=matrices(cached.records),
            top_ids=top,
            top_logits=logits[:, top],
            cached_logits=last[top],
            likeliest_ids=likeliest.indices,
            likeliest=likeliest.values,
            cache_difference=float((logits[-1] - last).abs().max()),
            largest_logit=float(logits[-1].abs().max()),
        )


def matrices(records: Sequence[AttentionRecord]) -> Matrices:
    """Stack the records of a pass over one text, one per layer, into six tensors."""

    def stacked(name: str) -> Tensor:
        return torch.stack([getattr(record, name)[0] for record in records]).float().cpu()

    return Matrices(*map(stacked, ("q", "k", "v", "scores", "weights", "context")))


def change_of_old_part(before: Tensor, now: Tensor, name: str) -> Tensor:
    """The largest absolute change in the old part of a matrix.

    before: (..., rows, columns), the matrix one step ago. now: the same matrix in this step, with
    more rows (and more columns for scores and weights); the rest is ignored. Returns (...).
    Raises: ValueError if `now` is smaller than `before`.
    """
    n_rows, n_columns = before.shape[-2:]
    if now.shape[-2] < n_rows or now.shape[-1] < n_columns:
        raise ValueError(
            f"{name} of shape {tuple(now.shape)} are smaller than before: {tuple(before.shape)}"
        )
    return (now[..., :n_rows, :n_columns] - before).abs().amax(dim=(-2, -1))  # [largest change]


def old_rows_by_layer(
    model: Transformer, before_ids: Sequence[int], ids: Sequence[int], n_rows: int
) -> tuple[Tensor, Tensor]:
    """How far a longer text moves its first tokens' keys and values in each layer.

    Both texts start with the same `n_rows` tokens. Returns the largest absolute difference of those
    tokens' keys and values, (L), and their largest absolute value, (L).
    Raises: ValueError if the texts don't start with the same `n_rows` tokens.
    """
    if n_rows < 1 or list(before_ids[:n_rows]) != list(ids[:n_rows]) or len(before_ids) < n_rows:
        raise ValueError(f"the two texts don't start with the same {n_rows} tokens")
    with torch.inference_mode():
        device = next(model.parameters()).device
        passes = [
            model(torch.tensor([list(text)], device=device), record=True).records
            for text in (before_ids, ids)
        ]
        old, new = (
            torch.stack([torch.cat((r.k, r.v), -1)[0, :, :n_rows] for r in records]).float().cpu()
            for records in passes
        )
    return (new - old).abs().amax(dim=(1, 2, 3)), old.abs().amax(dim=(1, 2, 3))


def last_context(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float, window: int | None = None
) -> Tensor:
    """The last context row of causal attention: (..., T, D) each -> (..., D).

    Rows outside the window are dropped, as a cache with that window does; a weight of 0 would
    still read them.
    """
    n = q.shape[-2]
    n_seen = n if window is None else min(window, n)
    mask = causal_mask(n, n, window=window, device=q.device)[:, -n_seen:]
    k, v = k[..., -n_seen:, :], v[..., -n_seen:, :]
    return attend(q, k, v, mask=mask, scale=scale).context[..., -1, :]


def rows_read(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float, window: int | None = None
) -> dict[str, Tensor]:
    """Which rows of q, k and v the last context row depends on.

    Each row in turn is set to NaN. Anything computed from NaN is NaN, so row i was read if the last
    context row becomes NaN. q, k, v: (T, D) of one head. Each result: bool, (T).
    """
    read_rows = {}
    for name, spoiled in ((QUERIES, q), (KEYS, k), (VALUES, v)):
        n = spoiled.shape[0]
        copies = spoiled.repeat(n, 1, 1)  # (T, T, D): copy i has NaN in row i
        copies[torch.arange(n), torch.arange(n)] = torch.nan
        inputs = {part: x.expand(n, *x.shape) for part, x in zip("qkv", (q, k, v), strict=True)}
        inputs[name[0]] = copies
        # [rows read]
        read_rows[name] = last_context(**inputs, scale=scale, window=window).isnan().any(-1)
    return read_rows


def overwrite_rows(matrix: Tensor, n_old: int, fill: float) -> Tensor:
    """A copy with the first `n_old` rows set to `fill`: (T, D) -> (T, D)."""
    copy = matrix.clone()
    copy[:n_old] = fill
    return copy


@dataclass(frozen=True)
class MatrixWork:
    """One matrix in one step, and how much of it is recomputed without a cache.

    n_repeated: entries that were already computed one step ago. n_hidden: new entries that are
    masked, in the new keys' columns of old queries. The rest of the `n_entries` is new and used.
    products, cached_products: multiplications without and with a cache.
    """

    name: str
    n_entries: int
    n_repeated: int
    n_hidden: int
    products: int
    cached_products: int

    @property
    def n_new(self) -> int:
        """Number of entries that a step with a cache computes."""
        return self.n_entries - self.n_repeated - self.n_hidden


def parts(
    config: TransformerConfig, n_tokens: int, n_before: int, scope: Scope = "head"
) -> tuple[MatrixWork, ...]:
    """Count the matrices of a step over `n_tokens`, `n_before` of them run before.

    scope: one head, one layer (with output projection and feed-forward network), or the model
    (with logits: every row without a cache, only new rows with one). Keys and values are counted
    once for all query heads that share them. For the model, the products are half of
    `costs.formulas.forward_flops`, which counts an addition for each one.
    Raises: ValueError for another scope, latent attention, or not 0 <= n_before < n_tokens.
    """
    _check_kind(config)
    if not 0 <= n_before < n_tokens:
        raise ValueError(f"{n_before} of {n_tokens} tokens cannot have been run before")
    if scope not in ("head", "layer", "model"):
        raise ValueError(f'scope must be "head", "layer" or "model", got {scope!r}')
    width, size, n_new = config.d_model, config.d_head, n_tokens - n_before
    heads, kv_heads = (1, 1) if scope == "head" else (config.n_heads, config.kv_heads)
    times = config.n_layers if scope == "model" else 1

    def rows(name: str, n_columns: int, products: int) -> MatrixWork:
        """A matrix with one row per token, each of which takes `products`."""
        return MatrixWork(
            name,
            n_tokens * n_columns * times,
            n_before * n_columns * times,
            0,
            n_tokens * products * times,
            n_new * products * times,
        )

    def square(name: str, products: int) -> MatrixWork:
        """A token-by-token matrix whose entries take `products` each."""
        of = heads * times
        return MatrixWork(
            name,
            n_tokens * n_tokens * of,
            n_before * n_before * of,
            n_before * n_new * of,
            n_tokens * n_tokens * products * of,
            n_new * n_tokens * products * of,
        )

    step_parts = [
        rows(QUERIES, heads * size, heads * size * width),
        rows(KEYS, kv_heads * size, kv_heads * size * width),
        rows(VALUES, kv_heads * size, kv_heads * size * width),
        square(SCORES, size),
        square(WEIGHTS, 0),
        rows(CONTEXT, heads * size, heads * size * n_tokens),
    ]
    if scope != "head":
        inner = (3 if config.gated else 2) * width * config.d_ff
        step_parts += [rows(OUT, width, heads * size * width), rows(FEED_FORWARD, width, inner)]
    if scope == "model":
        times = 1
        step_parts.append(rows(LOGITS, config.vocab_size, width * config.vocab_size))
    return tuple(step_parts)


def _check_kind(config: TransformerConfig) -> None:
    if config.latent is not None:
        raise ValueError("latent attention caches latents, not the keys and values shown here")
    if not config.causal or config.output == "none":
        raise ValueError(
            "only a causal model with an output matrix can generate text token by token"
        )
