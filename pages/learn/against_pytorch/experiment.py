"""Five implementations of attention that share the same weights.

All map x (B, T, C) to (B, T, C) and end with the same output projection, so their outputs can be
compared directly. Dimension letters: B batch, T tokens, H heads, D head size, C = H * D width.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from attention_core.attend import attend
from attention_core.costs.stopwatch import Samples, interleave, seconds_of
from attention_core.heads import merge_heads, split_heads
from attention_core.ladder import (
    MultiHeadAttention,
    MultiHeadAttentionWrapper,
)
from attention_core.masks import causal_mask
from attention_core.seeding import seeded

WRAPPER = "wrapper"
SPLIT = "weight splits"
FUSED = "fused qkv"
MODULE = "nn.MultiheadAttention"
SDPA = "scaled_dot_product_attention"
KINDS = (WRAPPER, SPLIT, FUSED, MODULE, SDPA)

# Head counts of the timing series; all of them divide any multiple of 192.
SERIES_HEADS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96)

# Operators by what they compute. Projections multiply (B*T, C) by a weight matrix, scores and
# weighted sums are batched products, and PyTorch's kernel does both of those in one call.
_PROJECTIONS = ("mm", "addmm")
_BATCHED = ("bmm", "baddbmm")
_KERNELS = (
    "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
)


class WrappedHeads(nn.Module):
    """The lecture's wrapper, one head at a time, plus the output projection.

    Head h gets rows h*D to (h+1)*D of each matrix in `ours` as its own three small matrices.
    """

    def __init__(self, ours: MultiHeadAttention) -> None:
        super().__init__()
        self.wrapper = MultiHeadAttentionWrapper(
            ours.W_query.in_features,
            ours.head_dim,
            ours.context_length,
            ours.dropout,
            ours.num_heads,
            ours.W_query.bias is not None,
            causal=ours.causal,
        )
        self.out_proj = copy.deepcopy(ours.out_proj)
        with torch.no_grad():
            for name in ("W_query", "W_key", "W_value"):
                wide: nn.Linear = getattr(ours, name)
                for number, head in enumerate(self.wrapper.heads):
                    rows = slice(number * ours.head_dim, (number + 1) * ours.head_dim)
                    narrow: nn.Linear = getattr(head, name)
                    narrow.weight.copy_(wide.weight[rows])
                    if wide.bias is not None:
                        narrow.bias.copy_(wide.bias[rows])

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        return self.out_proj(self.wrapper(x))


class FusedAttention(nn.Module):
    """Attention with one product for queries, keys and values instead of three.

    The three (C, C) matrices of `ours` are stacked into one (3C, C) matrix. Everything after the
    product is the same.
    """

    def __init__(self, ours: MultiHeadAttention) -> None:
        super().__init__()
        self.num_heads, self.causal = ours.num_heads, ours.causal
        d_in, d_out = ours.W_query.in_features, ours.W_query.out_features
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=ours.W_query.bias is not None)
        self.out_proj = copy.deepcopy(ours.out_proj)
        with torch.no_grad():
            self.qkv.weight.copy_(_stacked(ours, "weight"))
            if self.qkv.bias is not None:
                self.qkv.bias.copy_(_stacked(ours, "bias"))

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        q, k, v = self.qkv(x).chunk(3, dim=-1)  # [projection] (B, T, 3C) -> 3 x (B, T, C)
        mask = causal_mask(x.shape[1], x.shape[1], device=x.device) if self.causal else None
        heads = [split_heads(part, self.num_heads) for part in (q, k, v)]
        return self.out_proj(merge_heads(attend(*heads, mask=mask).context))


class SplitWithKernel(nn.Module):
    """The projections of `ours` with PyTorch's kernel instead of `attend`."""

    def __init__(self, ours: MultiHeadAttention) -> None:
        super().__init__()
        self.num_heads, self.causal = ours.num_heads, ours.causal
        self.W_query, self.W_key = copy.deepcopy(ours.W_query), copy.deepcopy(ours.W_key)
        self.W_value, self.out_proj = copy.deepcopy(ours.W_value), copy.deepcopy(ours.out_proj)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        q = split_heads(self.W_query(x), self.num_heads)
        k = split_heads(self.W_key(x), self.num_heads)
        v = split_heads(self.W_value(x), self.num_heads)
        # [context]
        context = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out_proj(merge_heads(context))


class TorchModule(nn.Module):
    """`nn.MultiheadAttention` with the weights of `ours`, called as self-attention.

    PyTorch has a single switch for all biases, but ours always has an output bias. If `ours` has
    no biases on queries, keys and values, those of the module are zeros.
    Raises: ValueError if the input and output widths of `ours` differ.
    """

    def __init__(self, ours: MultiHeadAttention) -> None:
        super().__init__()
        d_in, d_out = ours.W_query.in_features, ours.W_query.out_features
        if d_in != d_out:
            raise ValueError(f"nn.MultiheadAttention keeps the width, got {d_in} to {d_out}")
        self.causal = ours.causal
        self.module = nn.MultiheadAttention(d_out, ours.num_heads, batch_first=True)
        with torch.no_grad():
            self.module.in_proj_weight.copy_(_stacked(ours, "weight"))
            self.module.in_proj_bias.zero_()
            if ours.W_query.bias is not None:
                self.module.in_proj_bias.copy_(_stacked(ours, "bias"))
            self.module.out_proj.weight.copy_(ours.out_proj.weight)
            self.module.out_proj.bias.copy_(ours.out_proj.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C). Without weights, PyTorch may use its fast path."""
        mask = self._attention_mask(x)
        # [module output]
        out, _ = self.module(x, x, x, attn_mask=mask, is_causal=self.causal, need_weights=False)
        return out

    def weights(self, x: Tensor) -> Tensor:
        """Attention weights as PyTorch returns them, averaged over the heads: (B, T, T)."""
        _, averaged = self.module(x, x, x, attn_mask=self._attention_mask(x), need_weights=True)
        return averaged

    def _attention_mask(self, x: Tensor) -> Tensor | None:
        n_tokens = x.shape[1]  # PyTorch's masks are True where attention is forbidden
        return ~causal_mask(n_tokens, n_tokens, device=x.device) if self.causal else None


_VARIANTS: Mapping[str, Callable[[MultiHeadAttention], nn.Module]] = {
    WRAPPER: WrappedHeads,
    SPLIT: lambda ours: ours,
    FUSED: FusedAttention,
    MODULE: TorchModule,
    SDPA: SplitWithKernel,
}


def variant(kind: str, ours: MultiHeadAttention) -> nn.Module:
    """Build one of `KINDS` in eval mode with the weights of `ours`."""
    with seeded(0):  # the constructors draw random weights; keep the global RNG state unchanged
        return _VARIANTS[kind](ours).eval()


@dataclass(frozen=True)
class ImplementationOutputs:
    """Outputs of every implementation on one input, and the weights of two of them.

    x and each of `outputs` are (B, T, C); `our_weights` and `torch_weights` are (B, T, T), averaged
    over the heads.
    """

    x: Tensor
    outputs: Mapping[str, Tensor]
    our_weights: Tensor
    torch_weights: Tensor

    def difference(self, kind: str) -> float:
        """The largest absolute difference from the output of the weight splits."""
        return largest_difference(self.outputs[kind], self.outputs[SPLIT])

    @property
    def weights_difference(self) -> float:
        """The largest absolute difference between the averaged weights."""
        return largest_difference(self.our_weights, self.torch_weights)


def make_attention(
    width: int, n_heads: int, n_tokens: int, *, causal: bool, qkv_bias: bool, seed: int
) -> MultiHeadAttention:
    """A `MultiHeadAttention` (C, C) with random weights from a seed, in eval mode.

    Weights and biases are drawn uniformly from [-1/sqrt(C), 1/sqrt(C)).
    Raises: ValueError if the heads don't divide the width.
    """
    with seeded(seed):
        ours = MultiHeadAttention(width, width, n_tokens, 0.0, n_heads, qkv_bias, causal=causal)
    return ours.eval()


@torch.inference_mode()
def compare(ours: MultiHeadAttention, x: Tensor) -> ImplementationOutputs:
    """Run every implementation on x (B, T, C)."""
    variants = {kind: variant(kind, ours) for kind in KINDS}
    outputs = {kind: module(x) for kind, module in variants.items()}
    torch_module = variants[MODULE]
    assert isinstance(torch_module, TorchModule)  # for the type checker
    weights = ours.record(x).weights
    averaged = weights.mean(dim=-3)  # [averaged weights] (B, H, T, T) -> (B, T, T)
    return ImplementationOutputs(x, outputs, averaged, torch_module.weights(x))


def largest_difference(left: Tensor, right: Tensor) -> float:
    """The largest absolute difference between two tensors of the same shape."""
    difference = (left - right).abs().max()  # [difference]
    return difference.item()


@dataclass(frozen=True)
class ProductCounts:
    """Matrix products in one call, by what they compute.

    projections: queries, keys, values and output. batched: batched products (scores and weighted
    sums), for one head or all heads. kernels: fused calls that compute both of these.
    """

    projections: int
    batched: int
    kernels: int


def count_products(module: nn.Module, x: Tensor) -> ProductCounts:
    """Count the matrix products in one call by watching PyTorch's dispatcher.

    Gradients are enabled because without them `nn.MultiheadAttention` runs as one opaque operator.
    """
    with torch.enable_grad(), _OperatorCounter() as counter:
        module(x)
    return ProductCounts(
        projections=sum(counter.calls[name] for name in _PROJECTIONS),
        batched=sum(counter.calls[name] for name in _BATCHED),
        kernels=sum(counter.calls[name] for name in _KERNELS),
    )


def qkv_products(kind: str, n_heads: int) -> int:
    """Number of products for queries, keys and values, by formula.

    That is 3H for the wrapper, 3 for weight splits and 1 for the fused matrix. The output
    projection adds one more. Source: the lecture on weight splits, for the first two.
    Raises: ValueError for an unknown kind or fewer than one head.
    """
    products = {WRAPPER: 3 * n_heads, SPLIT: 3, FUSED: 1, MODULE: 1, SDPA: 3}
    if kind not in products or n_heads < 1:
        raise ValueError(f"no count for {kind!r} with {n_heads} heads")
    return products[kind]


class _OperatorCounter(TorchDispatchMode):
    """Counts calls to PyTorch's operators by name."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        self.calls[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class SavedBytes:
    """Bytes that one call keeps for the backward pass, not counting its parameters.

    square: the bytes in floating-point tensors whose shape ends in (T, T), that is, scores or
    weights; None if T equals another dimension, which makes the shape ambiguous.
    """

    total: int
    square: int | None


def saved_for_backward(module: nn.Module, x: Tensor, *, n_heads: int) -> SavedBytes:
    """Measure the bytes that autograd saves in one call on x (B, T, C) with H heads.

    The input is included, the parameters aren't. Memory shared by several tensors counts once.
    """
    n_tokens, width = x.shape[1:]
    parameters = {p.untyped_storage().data_ptr() for p in module.parameters()}
    sizes: dict[int, tuple[int, bool]] = {}
    alive: list[Tensor] = []  # keep tensors alive so that no address is reused

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            # [square]
            square = tensor.is_floating_point() and tensor.shape[-2:] == (n_tokens, n_tokens)
            _, before = sizes.get(storage.data_ptr(), (0, False))
            sizes[storage.data_ptr()] = (storage.nbytes(), square or before)
            alive.append(tensor)
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
        module(x.detach().requires_grad_())
    square = sum(n_bytes for n_bytes, is_square in sizes.values() if is_square)
    unclear = n_tokens in (width, width // n_heads, n_heads)
    return SavedBytes(sum(n_bytes for n_bytes, _ in sizes.values()), None if unclear else square)


def scores_bytes(batch_size: int, n_heads: int, n_tokens: int, *, bytes_per_value: int = 4) -> int:
    """Bytes of the scores of all heads: B * H * T * T values.

    Raises: ValueError for an argument below 1.
    """
    sizes = (batch_size, n_heads, n_tokens, bytes_per_value)
    if min(sizes) < 1:
        raise ValueError(f"sizes must be at least 1, got {sizes}")
    return batch_size * n_heads * n_tokens * n_tokens * bytes_per_value


@torch.inference_mode()
def time_kinds(
    width: int, n_heads: int, n_tokens: int, *, repeats: int, seed: int = 0
) -> dict[str, Samples]:
    """Time one causal forward pass of every implementation, in seconds.

    The batch size is 1, and the implementations take turns within each repeat.
    Raises: ValueError if the heads don't divide the width or `repeats` is below 1.
    """
    ours = make_attention(width, n_heads, n_tokens, causal=True, qkv_bias=False, seed=seed)
    x = random_input(1, n_tokens, width, seed=seed)
    variants = {kind: variant(kind, ours) for kind in KINDS}

    def call(module: nn.Module) -> Callable[[], float]:
        return lambda: seconds_of(lambda: module(x))

    runs = {kind: call(module) for kind, module in variants.items()}
    return {
        kind: Samples(tuple(seconds)) for kind, seconds in interleave(runs, repeats=repeats).items()
    }


def random_input(batch_size: int, n_tokens: int, width: int, *, seed: int) -> Tensor:
    """Standard-normal x (B, T, C) from a seed; leaves the global RNG state unchanged."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch_size, n_tokens, width, generator=generator)


def _stacked(ours: MultiHeadAttention, attribute: str) -> Tensor:
    """Stack the q, k, v weights (3C, C) or biases (3C) in PyTorch's order."""
    parts = [getattr(linear, attribute) for linear in (ours.W_query, ours.W_key, ours.W_value)]
    return torch.cat(parts)
