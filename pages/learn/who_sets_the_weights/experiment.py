"""Steps of gradient descent on one text, and how the loss reaches the matrices of one head.

A `Training` changes a copy of a model's weights, never the model itself. Each matrix is updated as
soon as its gradient is known, and the gradient is then deleted, so only the gradients of one part
of the model are in memory at a time.

Dimension letters: T tokens, L layers, H query heads, H_kv key/value heads, D head size, C width,
V vocabulary.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attention_core.checks import require_positive
from attention_core.model.block import LayerRecord
from attention_core.model.config import TransformerConfig
from attention_core.model.output import TransformerOutput
from attention_core.model.pass_context import NO_HOOKS, Hooks
from attention_core.model.transformer import Transformer
from attention_core.model.variants import with_weights
from attention_core.positions.rotary import Rotation, rotate

W_Q, W_K, W_V, W_O, FEED_FORWARD = "W_q", "W_k", "W_v", "W_o", "feed-forward"
EMBEDDINGS, NORMS, BIASES = "embeddings", "norms", "biases"
KINDS = (W_Q, W_K, W_V, W_O, FEED_FORWARD, NORMS, BIASES, EMBEDDINGS)

Part = tuple[int | None, str]  # the layer (None: in no layer) and the kind of some weights


@dataclass(frozen=True)
class PassSummary:
    """The results of one pass over a text.

    losses: the negative log probability of each next token, (T - 1). weights: (L, H, T, T). keys:
    (L, H_kv, T, D), as attention uses them.
    """

    losses: Tensor
    weights: Tensor
    keys: Tensor

    @property
    def loss(self) -> float:
        """The mean of the losses."""
        return float(self.losses.mean())


@dataclass(frozen=True)
class Signal:
    """The length of the loss's gradient at every tensor between the loss and W_q.

    Lengths (square roots of sums of squares): of the logits (T, V) and the final hidden states
    (T, C); by layer (L,) of the layer's output and of its attention's output, (T, C) each; by layer
    and head (L, H) of the context (T, D), the weights (T, T), the scaled scores (T, T), the rotated
    queries (T, D), and the head's columns of W_q (C, D).
    score_gradients: the gradients of the scaled scores, (L, H, T, T).
    """

    logits: float
    hidden: float
    layer_outputs: Tensor
    attention: Tensor
    context: Tensor
    weights: Tensor
    scores: Tensor
    queries: Tensor
    w_q: Tensor
    score_gradients: Tensor


@dataclass(frozen=True)
class GradientStep:
    """One step: the pass before it, each part's gradient, and the memory it needed.

    gradients: the length of each part's gradient. n_kept_bytes: bytes of the tensors that autograd
    stored for the backward pass, without the weights, counting shared memory once. seconds: time of
    both passes and the update.
    """

    before: PassSummary
    gradients: dict[Part, float]
    signal: Signal
    n_kept_bytes: int
    seconds: float


@dataclass(frozen=True)
class PartChange:
    """The change of a part: its size, its length before, and the length of the change."""

    n_numbers: int
    length: float
    change: float

    @property
    def share(self) -> float:
        """The change relative to the length; 0 if both are 0."""
        return self.change / self.length if self.length else math.inf if self.change else 0.0


class Training:
    """Gradient descent on one text, on a copy of a model in float32.

    ids: (1, T), on the model's device. All results are on the CPU.
    Raises: ValueError for a model that doesn't predict the next token (no output matrix, or not
    causal), a model with latent attention, fewer than 2 tokens, or a learning rate that isn't
    positive and finite.
    """

    def __init__(self, model: Transformer, ids: Tensor, learning_rate: float) -> None:
        config = model.config
        if config.output == "none" or not config.causal or config.latent is not None:
            raise ValueError(
                "a next-token loss needs a causal model with an output matrix and without latent "
                f"attention, got output={config.output!r}, causal={config.causal}, "
                f"latent={config.latent}"
            )
        if ids.dim() != 2 or len(ids) != 1 or ids.shape[1] < 2:
            raise ValueError(
                f"ids must be (1, tokens) with at least 2 tokens, got {tuple(ids.shape)}"
            )
        require_positive("learning_rate", learning_rate)
        self.ids, self.learning_rate = ids, learning_rate
        self._original, self.n_bytes = model, training_bytes(model)
        self.model = _float32_copy(model).requires_grad_(True)

    @torch.enable_grad()
    def step(self, hooks: Hooks = NO_HOOKS) -> GradientStep:
        """Run a forward and a backward pass, and move every matrix against its gradient.

        new = old - learning_rate * gradient, which is PyTorch's SGD without momentum.
        """
        begin = time.perf_counter()
        gradients: dict[Part, float] = {}
        of_w_q: dict[int, Tensor] = {}  # layer -> length of W_q's gradient by head, (H,)
        config = self.model.config

        def move(name: str, parameter: Tensor) -> None:
            gradient = parameter.grad
            assert gradient is not None
            for part, numbers in parts(name, gradient, config):
                gradients[part] = math.hypot(gradients.get(part, 0.0), float(numbers.norm()))
                if part[1] == W_Q and part[0] is not None:
                    of_heads = numbers.unflatten(0, (config.n_heads, -1))  # (H, D, C)
                    of_w_q[part[0]] = of_heads.norm(dim=(1, 2)).cpu()
            parameter.data.add_(gradient, alpha=-self.learning_rate)  # [update]
            parameter.grad = None

        with ExitStack() as stack:
            for name, parameter in self.model.named_parameters():
                handle = parameter.register_post_accumulate_grad_hook(
                    lambda changed, name=name: move(name, changed)
                )
                stack.callback(handle.remove)
            with _count_saved_bytes(self.model) as kept:
                output = self.model(self.ids, record=True, hooks=hooks)
                losses = next_token_losses(output, self.ids)  # [losses]
                loss = losses.mean()  # [mean loss]
            watched = _GradientRecorder(output)
            n_kept_bytes = sum(kept.values())
            loss.backward()  # [gradients]
        w_q = torch.stack([of_w_q[layer] for layer in range(config.n_layers)])
        signal, seconds = watched.signal(w_q), time.perf_counter() - begin
        return GradientStep(_summarize(output, losses), gradients, signal, n_kept_bytes, seconds)

    @torch.no_grad()
    def summarize(self, hooks: Hooks = NO_HOOKS) -> PassSummary:
        """Run a forward pass of the copy."""
        output = self.model(self.ids, record=True, hooks=hooks)
        return _summarize(output, next_token_losses(output, self.ids))

    @torch.no_grad()
    def changes(self) -> dict[Part, PartChange]:
        """Compare every part of the copy with the original weights."""
        sums: dict[Part, list[float]] = {}
        changed = dict(self.model.named_parameters())
        for name, original in self._original.named_parameters():
            now = parts(name, changed[name], self.model.config)
            for (part, before), (_, after) in zip(
                parts(name, original, self.model.config), now, strict=True
            ):
                total = sums.setdefault(part, [0.0, 0.0, 0.0])
                total[0] += before.numel()
                total[1] = math.hypot(total[1], float(before.float().norm()))
                total[2] = math.hypot(total[2], float((after - before).norm()))
        return {
            part: PartChange(int(n), length, change) for part, (n, length, change) in sums.items()
        }


def training_bytes(model: Transformer) -> int:
    """Bytes of a copy in float32, plus the largest gradients in memory at the same time.

    The token table has the largest gradient. If it's also the output matrix, there are the
    gradients of both uses and their sum, so three of that size.
    """
    sizes = [parameter.numel() for parameter in model.parameters()]
    return torch.float32.itemsize * (sum(sizes) + 3 * max(sizes))


def _float32_copy(model: Transformer) -> Transformer:
    """Copy the weights in float32 into a single allocation.

    It's returned to the system when it's freed; many small pieces would stay with the process.
    """
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    device = next(model.parameters()).device
    pieces = torch.empty(sum(sizes.values()), device=device).split([*sizes.values()])
    weights = {}
    for piece, (name, parameter) in zip(pieces, model.named_parameters(), strict=True):
        weights[name] = piece.view(parameter.shape).copy_(parameter.detach())
    return with_weights(model.config, weights, like=model)


def next_token_losses(output: TransformerOutput, ids: Tensor) -> Tensor:
    """The negative log probability of each position's next token: (1, T) -> (T - 1)."""
    assert output.logits is not None
    return nn.functional.cross_entropy(output.logits[0, :-1], ids[0, 1:], reduction="none")


def parts(name: str, tensor: Tensor, config: TransformerConfig) -> list[tuple[Part, Tensor]]:
    """Split a parameter, or its gradient, into the parts it belongs to.

    Queries, keys and values share one matrix, ((H + 2 H_kv) D, C), which is split by rows.
    """
    words = name.split(".")
    layer = int(words[1]) if words[0] == "blocks" else None
    if "norm" in name:
        return [((layer, NORMS), tensor)]
    if layer is None:
        return [((None, EMBEDDINGS), tensor)]
    if words[-1] == "bias":
        return [((layer, BIASES), tensor)]
    if "qkv" in words:
        rows = tensor.split(config.qkv_widths)
        return [((layer, kind), own) for kind, own in zip((W_Q, W_K, W_V), rows, strict=True)]
    return [((layer, W_O if "attention" in words else FEED_FORWARD), tensor)]


def query_gradient(score_gradient: Tensor, keys: Tensor, scale: float) -> Tensor:
    """The gradient of a head's queries from that of its scores: (T, T), keys (T, D) -> (T, D)."""
    return scale * score_gradient @ keys


def w_q_gradient(x: Tensor, of_queries: Tensor, rotation: Rotation | None) -> Tensor:
    """The gradient of a head's columns of W_q from that of its queries: (T, D) -> (C, D).

    x: the input of attention, (T, C). The gradient of rotated queries is rotated back first.
    """
    if rotation is not None:
        cos, sin = rotation
        of_queries = rotate(of_queries, (cos, -sin))
    return x.T @ of_queries


class _GradientRecorder:
    """Retain the gradients of a pass's recorded tensors during the backward pass."""

    def __init__(self, output: TransformerOutput) -> None:
        assert output.logits is not None
        self._layers: tuple[LayerRecord, ...] = output.layers
        self._ends = (output.logits, output.hidden)
        for tensor in self._ends:
            tensor.retain_grad()
        for layer in self._layers:
            for tensor in self._gradients(layer):
                tensor.retain_grad()

    @staticmethod
    def _gradients(layer: LayerRecord) -> tuple[Tensor, ...]:
        record = layer.attention
        assert record.output is not None
        return (
            layer.output,
            record.output,
            record.context,
            record.weights,
            record.scaled_scores,
            record.q,
        )

    def signal(self, w_q: Tensor) -> Signal:
        """Measure the gradients; `w_q`: the lengths of the matrices' gradients, (L, H)."""
        leaving, attention, context, weights, scores, queries = (
            torch.stack([_gradient(tensor)[0].cpu() for tensor in of_layers])
            for of_layers in zip(*map(self._gradients, self._layers), strict=True)
        )
        logits, hidden = (float(_gradient(tensor).norm()) for tensor in self._ends)
        return Signal(
            logits=logits,
            hidden=hidden,
            layer_outputs=leaving.norm(dim=(1, 2)),
            attention=attention.norm(dim=(1, 2)),
            context=context.norm(dim=(2, 3)),
            weights=weights.norm(dim=(2, 3)),
            scores=scores.norm(dim=(2, 3)),
            queries=queries.norm(dim=(2, 3)),
            w_q=w_q,
            score_gradients=scores,
        )


def _gradient(tensor: Tensor) -> Tensor:
    assert tensor.grad is not None
    return tensor.grad


@contextmanager
def _count_saved_bytes(model: nn.Module) -> Iterator[dict[int, int]]:
    """Record the bytes of each memory block that autograd stores, except for weights."""
    sizes: dict[int, int] = {}
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}

    def keep(tensor: Tensor) -> Tensor:
        memory = tensor.untyped_storage()
        if memory.data_ptr() not in own:
            sizes[memory.data_ptr()] = memory.nbytes()
        return tensor.detach()  # the tensor itself would keep its graph alive

    def hand_back(tensor: Tensor) -> Tensor:
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, hand_back):
        yield sizes


def _summarize(output: TransformerOutput, losses: Tensor) -> PassSummary:
    return PassSummary(
        losses.detach().cpu(),
        torch.stack([record.weights[0].detach() for record in output.records]).cpu(),
        torch.stack([record.k[0].detach() for record in output.records]).cpu(),
    )
