"""What generation without a KV cache computes again, and why keys and values are enough to keep.

A text grows by one token a step. Each step is run twice for real: the whole text without a cache,
and behind a cache the newest token alone. The first shows which entries were there one step before;
the second, that the last row does not need them made again.

Dimension letters: L layers, H query heads, H_kv key/value heads, D head size, C width, V the
vocabulary, P prompt tokens, T tokens of a step, A columns of the logits that are kept.
Source: course notes, "KV cache": the boxes, the last row of the logits, and the way back from it.
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
from attention_core.model.forward_pass import NO_HOOKS, Hooks
from attention_core.model.transformer import Transformer

QUERIES, KEYS, VALUES = "queries", "keys", "values"
SCORES, WEIGHTS, CONTEXT = "scores", "weights", "context"
OUT, FEED_FORWARD, LOGITS = "output projection", "feed-forward", "logits"

Scope = Literal["head", "layer", "model"]


@dataclass(frozen=True)
class Matrices:
    """The matrices of one pass in every layer and head, float32, on the CPU.

    T rows were run against S keys; T = S without a cache. `scores` are q . k before the scale and
    the mask: what is above the diagonal was computed too.
    """

    q: Tensor  # (L, H, T, D)
    k: Tensor  # (L, H_kv, S, D)
    v: Tensor  # (L, H_kv, S, D)
    scores: Tensor  # (L, H, T, S)
    weights: Tensor  # (L, H, T, S)
    context: Tensor  # (L, H, T, D)

    @property
    def named(self) -> dict[str, Tensor]:
        """The six by their names, in the order in which they are computed."""
        return {
            QUERIES: self.q, KEYS: self.k, VALUES: self.v,
            SCORES: self.scores, WEIGHTS: self.weights, CONTEXT: self.context,
        }  # fmt: skip

    @property
    def nbytes(self) -> int:
        """Bytes of all six."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.named.values())

    def head(self, layer: int, head: int) -> dict[str, Tensor]:
        """The six matrices of one query head, (T or S, D or S); its keys may serve others too.

        Raises: ValueError for a layer or head that is not there.
        """
        n_layers, n_heads = self.q.shape[:2]
        if not 0 <= layer < n_layers or not 0 <= head < n_heads:
            raise ValueError(
                f"there are {n_layers} layers of {n_heads} heads, not layer {layer}, head {head}"
            )
        shared = n_heads // self.k.shape[1]  # query heads of one key/value head
        return {
            name: of_layers[layer, head // shared if name in (KEYS, VALUES) else head]
            for name, of_layers in self.named.items()
        }


@dataclass(frozen=True)
class GrownStep:
    """One step: the whole text without a cache, and its newest tokens behind one.

    n_tokens: T. n_before: how many of them an earlier step had run (0 in the first step).
    full: the pass without a cache. cached: the other, its T - n_before rows against all T keys.
    top_ids: (A), the likeliest next tokens. top_logits: (T, A), their logits in every row of the
    pass without a cache; cached_logits: (A), in the last row of the other.
    likeliest_ids: (T), what each row of `full` predicts; likeliest: (T), its probability.
    cache_difference: the largest absolute difference of the two last rows of logits, over all V;
    largest_logit: what it is to be compared with.
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
        """The likeliest next token: what the next step runs too."""
        return int(self.likeliest_ids[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of the matrices."""
        return self.full.nbytes + self.cached.nbytes


def bytes_needed(config: TransformerConfig, n_prompt: int, n_steps: int) -> int:
    """Bytes that the matrices of all steps of `grow` will take."""

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

    The token that the pass without a cache finds likeliest is appended to both. The
    `hooks` go to every forward pass.
    Raises: ValueError, before anything runs, for no token, a model that cannot generate or has
    latent attention (whose cache does not hold keys and values), `n_steps` below 1, `n_columns`
    outside 1 .. V, or more tokens than the context holds.
    """
    config = model.config
    _check_kind(config)
    if not token_ids or n_steps < 1:
        raise ValueError(f"got {len(token_ids)} tokens and {n_steps} steps: 1 of each is needed")
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
    # inference mode must not leak to the consumer between two steps
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
    """The records of a pass over one text, one a layer, as six tensors."""

    def stacked(name: str) -> Tensor:
        return torch.stack([getattr(record, name)[0] for record in records]).float().cpu()

    return Matrices(*map(stacked, ("q", "k", "v", "scores", "weights", "context")))


def repeated(before: Tensor, now: Tensor, name: str) -> Tensor:
    """How far a matrix's old part has moved: the largest absolute difference, (..., rows, columns).

    `before` is a matrix of the step before and `now` the same one in this step, with more rows (and
    columns, for scores and weights). The part of `now` that `before` has the shape of is compared;
    the leading axes stay: (...).
    Raises: ValueError if `now` is smaller than `before`.
    """
    n_rows, n_columns = before.shape[-2:]
    if now.shape[-2] < n_rows or now.shape[-1] < n_columns:
        raise ValueError(
            f"{name} of shape {tuple(now.shape)} hold no part of shape {tuple(before.shape)}"
        )
    return (now[..., :n_rows, :n_columns] - before).abs().amax(dim=(-2, -1))  # [largest change]


def old_rows_by_layer(
    model: Transformer, before_ids: Sequence[int], ids: Sequence[int], n_rows: int
) -> tuple[Tensor, Tensor]:
    """How far a longer text moves the keys and values of its first tokens, in every layer.

    Both texts begin with the same `n_rows` tokens. Returns the largest absolute difference of those
    tokens' keys and values, (L), and the largest absolute value among them, (L).
    Raises: ValueError if the texts do not begin with the same `n_rows` tokens.
    """
    if n_rows < 1 or list(before_ids[:n_rows]) != list(ids[:n_rows]) or len(before_ids) < n_rows:
        raise ValueError(f"the two texts do not begin with the same {n_rows} tokens")
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
    """The last context row of causal attention in one head: (..., T, D) each -> (..., D).

    Rows that a window hides from it are left out, as a cache with that window leaves them out: a
    weight of 0 would still read them.
    """
    n = q.shape[-2]
    n_seen = n if window is None else min(window, n)
    mask = causal_mask(n, n, window=window, device=q.device)[:, -n_seen:]
    k, v = k[..., -n_seen:, :], v[..., -n_seen:, :]
    return attend(q, k, v, mask=mask, scale=scale).context[..., -1, :]


def rows_read(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float, window: int | None = None
) -> dict[str, Tensor]:
    """Which rows of q, k and v the last context row is made of, found by spoiling each in turn.

    Whatever is computed from NaN is NaN: row i was read if the last context row is NaN once row i
    of the matrix is. q, k, v: (T, D) of one head. Each result: (T) of bool.
    """
    read_rows = {}
    for name, spoiled in ((QUERIES, q), (KEYS, k), (VALUES, v)):
        n = spoiled.shape[0]
        copies = spoiled.repeat(n, 1, 1)  # (T, T, D): in copy i, row i is spoiled
        copies[torch.arange(n), torch.arange(n)] = torch.nan
        inputs = {part: x.expand(n, *x.shape) for part, x in zip("qkv", (q, k, v), strict=True)}
        inputs[name[0]] = copies
        # [rows read]
        read_rows[name] = last_context(**inputs, scale=scale, window=window).isnan().any(-1)
    return read_rows


def spoil(matrix: Tensor, n_old: int, fill: float) -> Tensor:
    """A copy whose first `n_old` rows hold `fill` alone: (T, D) -> (T, D)."""
    copy = matrix.clone()
    copy[:n_old] = fill
    return copy


@dataclass(frozen=True)
class MatrixWork:
    """One matrix in one step, and what of it is made again without a cache.

    Of its `n_entries`, `n_repeated` were there a step ago, and `n_hidden` are new but masked away
    at once: the new keys' columns of the old queries. The rest is new and used. `products` are
    the multiplications without a cache, `cached_products` those with one.
    """

    name: str
    n_entries: int
    n_repeated: int
    n_hidden: int
    products: int
    cached_products: int

    @property
    def n_new(self) -> int:
        """What a step with a cache computes."""
        return self.n_entries - self.n_repeated - self.n_hidden


def parts(
    config: TransformerConfig, n_tokens: int, n_before: int, scope: Scope = "head"
) -> tuple[MatrixWork, ...]:
    """The matrices of a step over `n_tokens`, of which `n_before` had been run before.

    Scope: one head, one layer (with its output projection and feed-forward network), or the model
    (with the logits: every row without a cache, those of new tokens with one). Keys and values are
    counted once for all the query heads that share them, as they are computed. Over the model, the
    products are half of `costs.formulas.forward_flops`, which counts an addition with each.
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
        """A matrix with a row a token, each made by so many products."""
        return MatrixWork(
            name,
            n_tokens * n_columns * times,
            n_before * n_columns * times,
            0,
            n_tokens * products * times,
            n_new * products * times,
        )

    def square(name: str, products: int) -> MatrixWork:
        """A matrix with a row and a column a token, each entry made by so many products."""
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
        raise ValueError("only a causal model with an output matrix writes a text token by token")
