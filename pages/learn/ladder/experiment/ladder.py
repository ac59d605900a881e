"""Run one rung of the ladder and compare it with the rung below.

The classes are those of `ladder.py`. Here they get random weights from a seed, run on one sentence
and are compared with the simpler class that they generalize.
Dimension letters: T tokens, H heads, D head size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor, nn

from attention_core.attend import AttentionRecord, attend, attention_scores
from attention_core.ladder import (
    CausalAttention,
    MultiHeadAttention,
    MultiHeadAttentionWrapper,
    SelfAttentionV1,
    SelfAttentionV2,
    simple_self_attention,
)
from attention_core.lecture_inputs import BOY, SEED_ARTICLE, SEED_V1, SEED_V2
from attention_core.seeding import seeded

SIMPLIFIED, V1, V2 = "simplified", "v1", "v2"
CAUSAL, DROPOUT, WRAPPER, SPLITS = "causal", "dropout", "wrapper", "splits"
RUNGS = (SIMPLIFIED, V1, V2, CAUSAL, DROPOUT, WRAPPER, SPLITS)


@dataclass(frozen=True)
class RungSettings:
    """Settings of a rung; each rung uses only some of them.

    d_out: output size, per head for the wrapper and in total for the weight splits.
    causal: whether the wrapper and the weight splits mask the future.
    seed: seed for the matrices; None means the lecture's (`lecture_seed`). draw: seed for dropout.
    """

    d_out: int = 2
    n_heads: int = 2
    dropout: float = 0.5
    causal: bool = True
    seed: int | None = None
    draw: int = 123


@dataclass(frozen=True)
class Rung:
    """One rung on one sentence.

    x: (T, d_in). matrices: parameters by name, in the layout of the class, which is (d_in, d_out)
    for v1 and (d_out, d_in) for `nn.Linear` from v2 on. record: without a batch, so (T, ...) on
    rungs with one head and (H, T, ...) on the last two. output: (T, C), the result of the class.
    difference: the largest absolute difference from the rung below, with settings that make both
    equal.
    """

    name: str
    x: Tensor
    matrices: dict[str, Tensor] = field(repr=False)
    record: AttentionRecord = field(repr=False)
    output: Tensor = field(repr=False)
    difference: float
    seed: int | None

    @property
    def n_heads(self) -> int:
        """Number of heads; 1 if the record has no head axis."""
        return self.record.q.shape[0] if self.record.q.dim() == 3 else 1

    def head(self, tensor: Tensor, head: int) -> Tensor:
        """One head of a tensor of the record: (H, T, ...) or (T, ...) -> (T, ...)."""
        return tensor[head] if tensor.dim() == 3 else tensor


def lecture_seed(name: str, x: Tensor) -> int:
    """The lectures' seed for this rung: 789 for v2 on six tokens, otherwise 123.

    The rungs with mask and dropout use the seed of v2, so they can be compared.
    """
    if name == V1:
        return SEED_V1
    if name in (WRAPPER, SPLITS) or x.shape[0] == len(BOY.tokens):
        return SEED_ARTICLE
    return SEED_V2


def run_rung(name: str, x: Tensor, settings: RungSettings = RungSettings()) -> Rung:  # noqa: B008
    """Run one rung on x (T, d_in) and compare it with the rung below.

    Raises: ValueError for an unknown rung, an x that isn't (T, d_in), or invalid sizes.
    """
    if name not in RUNGS:
        raise ValueError(f"{name!r} is not one of the rungs {', '.join(RUNGS)}")
    if x.dim() != 2 or 0 in x.shape:
        raise ValueError(f"a sentence has the shape (T, d_in), got {tuple(x.shape)}")
    seed = lecture_seed(name, x) if settings.seed is None else settings.seed
    # keep the global RNG state unchanged, even by modules whose weights are overwritten
    with seeded(seed), torch.no_grad():
        if name == SIMPLIFIED:
            record = attend(x, x, x, scale=1.0)  # [attention]
            return Rung(name, x, {}, record, record.context, _loop_difference(x), None)
        if name in (V1, V2):
            return _single(name, x, settings, seed)
        if name in (CAUSAL, DROPOUT):
            return _causal(name, x, settings, seed)
        return (_wrapper if name == WRAPPER else _splits)(x, settings, seed)


def loop_attention(x: Tensor) -> Tensor:
    """Simplified attention with Python floats: (T, d_in) -> (T, d_in)."""
    rows: list[list[float]] = x.tolist()
    contexts = []
    for query in rows:
        scores = [sum(a * b for a, b in zip(query, key, strict=True)) for key in rows]
        powers = [math.exp(score - max(scores)) for score in scores]
        total = sum(powers)
        contexts.append(
            [
                sum(power / total * row[column] for power, row in zip(powers, rows, strict=True))
                for column in range(x.shape[1])
            ]
        )
    return torch.tensor(contexts)


def products(query: Tensor, key: Tensor) -> Tensor:
    """Terms of a dot product: (D,) and (D,) -> (D,); their sum is the score."""
    return query * key


def score_matrix(w_query: Tensor, w_key: Tensor) -> Tensor:
    """M = W_q W_k^T: (d_in, D) and (d_in, D) -> (d_in, d_in).

    The score of tokens i and j is `x[i] @ M @ x[j]`.
    """
    return attention_scores(w_query, w_key)


def projections(rung: Rung, head: int = 0) -> tuple[Tensor, Tensor]:
    """W_query and W_key of one head as (d_in, D), for every rung.

    On the first rung, which has no matrices, both are the identity.
    """
    if rung.name == SIMPLIFIED:
        identity = torch.eye(rung.x.shape[1])
        return identity, identity
    if rung.name == V1:
        return rung.matrices["W_query"], rung.matrices["W_key"]
    if rung.name == WRAPPER:
        names = f"heads.{head}.W_query", f"heads.{head}.W_key"
        return rung.matrices[names[0]].T, rung.matrices[names[1]].T
    size = rung.record.q.shape[-1]
    rows = slice(head * size, (head + 1) * size)
    return rung.matrices["W_query"][rows].T, rung.matrices["W_key"][rows].T


def draw_fused(
    d_in: int, d_out: int, n_tokens: int, n_heads: int, *, causal: bool
) -> MultiHeadAttention:
    """Weight splits from one fused matrix, split in the order key, query, value.

    The article splits `nn.Linear(d_in, 3 * d_out)` in this order; another order would give
    different numbers for the same seed.
    Raises: ValueError if n_heads doesn't divide d_out.
    """
    fused = nn.Linear(d_in, 3 * d_out, bias=False)
    out_proj = nn.Linear(d_out, d_out)
    heads = MultiHeadAttention(d_in, d_out, n_tokens, 0.0, n_heads, causal=causal)
    with torch.no_grad():
        w_key, w_query, w_value = fused.weight.chunk(3)
        heads.W_key.weight.copy_(w_key)
        heads.W_query.weight.copy_(w_query)
        heads.W_value.weight.copy_(w_value)
        heads.out_proj.load_state_dict(out_proj.state_dict())
    return heads


def _single(name: str, x: Tensor, settings: RungSettings, seed: int) -> Rung:
    d_in = x.shape[1]
    with seeded(seed):
        v1 = SelfAttentionV1(d_in, settings.d_out)
    if name == V1:
        square = SelfAttentionV1(d_in, d_in)
        for parameter in square.parameters():
            parameter.copy_(torch.eye(d_in))
        below = simple_self_attention(x)[2]
        difference = _largest(square.record(x, scale=1.0).context, below)
        record = v1.record(x)
        return Rung(name, x, _parameters(v1), record, v1(x), difference, seed)
    with seeded(seed):
        v2 = SelfAttentionV2(d_in, settings.d_out)
    transposed = SelfAttentionV2(d_in, settings.d_out)
    for layer in ("W_query", "W_key", "W_value"):
        getattr(transposed, layer).weight.copy_(getattr(v1, layer).T)
    difference = _largest(transposed(x), v1(x))
    return Rung(name, x, _parameters(v2), v2.record(x), v2(x), difference, seed)


def _causal(name: str, x: Tensor, settings: RungSettings, seed: int) -> Rung:
    n_tokens, d_in = x.shape
    p = settings.dropout if name == DROPOUT else 0.0
    with seeded(seed):
        module = CausalAttention(d_in, settings.d_out, n_tokens, p)
    state = module.state_dict()
    without = CausalAttention(d_in, settings.d_out, n_tokens, 0.0, causal=name == DROPOUT)
    without.load_state_dict(state)
    if name == CAUSAL:
        below: nn.Module = SelfAttentionV2(d_in, settings.d_out)
    else:
        below = CausalAttention(d_in, settings.d_out, n_tokens, 0.0).eval()
    below.load_state_dict(state)
    difference = _largest(without.train()(x), below(x))
    with seeded(settings.draw):
        record = module.train().record(x)
    return Rung(name, x, _parameters(module), record, record.context, difference, seed)


def _wrapper(x: Tensor, settings: RungSettings, seed: int) -> Rung:
    wrapper = _draw_wrapper(x, settings, seed)
    heads = cast(list[CausalAttention], list(wrapper.heads))
    alone = []
    for head in heads:
        single = CausalAttention(
            x.shape[1], settings.d_out, x.shape[0], 0.0, causal=settings.causal
        )
        single.load_state_dict(head.state_dict())
        alone.append(single(x))
    output = wrapper(x)
    difference = _largest(output, torch.cat(alone, dim=-1))
    record = _stacked([head.record(x) for head in heads])
    return Rung(WRAPPER, x, _parameters(wrapper), record, output, difference, seed)


def _splits(x: Tensor, settings: RungSettings, seed: int) -> Rung:
    n_tokens, d_in = x.shape
    with seeded(seed):
        module = draw_fused(
            d_in, settings.d_out, n_tokens, settings.n_heads, causal=settings.causal
        )
    wrapper = _draw_wrapper(x, settings, seed)
    stacked = MultiHeadAttention(
        d_in,
        settings.n_heads * settings.d_out,
        n_tokens,
        0.0,
        settings.n_heads,
        causal=settings.causal,
    )
    for layer in ("W_query", "W_key", "W_value"):
        weights = torch.cat([getattr(head, layer).weight for head in wrapper.heads])
        getattr(stacked, layer).weight.copy_(weights)
    stacked.out_proj.weight.copy_(torch.eye(settings.n_heads * settings.d_out))
    stacked.out_proj.bias.zero_()
    difference = _largest(stacked(x[None])[0], wrapper(x))
    record = _without_batch(module.record(x[None]))
    output = module(x[None])[0]
    return Rung(SPLITS, x, _parameters(module), record, output, difference, seed)


def _draw_wrapper(x: Tensor, settings: RungSettings, seed: int) -> MultiHeadAttentionWrapper:
    with seeded(seed):
        return MultiHeadAttentionWrapper(
            x.shape[1], settings.d_out, x.shape[0], 0.0, settings.n_heads, causal=settings.causal
        )


_TENSORS = (
    "q", "k", "v", "scores", "masked_scores", "scaled_scores", "attention", "weights", "context",
)  # fmt: skip


def _stacked(records: list[AttentionRecord]) -> AttentionRecord:
    """Stack the records of H single heads (T, ...) into one (H, T, ...)."""
    parts = {name: torch.stack([getattr(r, name) for r in records]) for name in _TENSORS}
    return AttentionRecord(**parts, scale=records[0].scale)


def _without_batch(record: AttentionRecord) -> AttentionRecord:
    """The first batch element: (B, H, T, ...) -> (H, T, ...)."""
    output = None if record.output is None else record.output[0]
    parts = {name: getattr(record, name)[0] for name in _TENSORS}
    return AttentionRecord(**parts, scale=record.scale, output=output)


def _parameters(module: nn.Module) -> dict[str, Tensor]:
    by_name = {name: parameter.detach() for name, parameter in module.named_parameters()}
    return {
        name if name.startswith("out_proj") else name.removesuffix(".weight"): parameter
        for name, parameter in by_name.items()
    }


def _largest(left: Tensor, right: Tensor) -> float:
    return float((left - right).abs().max())


def _loop_difference(x: Tensor) -> float:
    return _largest(simple_self_attention(x)[2], loop_attention(x))
