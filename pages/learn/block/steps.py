"""One layer step by step: every tensor from input to output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pages.learn.block.activation import ActivationCurve, activation_curve
from pages.learn.block.original_layers import (
    DECODER_2017,
    ENCODER_2017,
    WIDTH_2017,
    split_words,
    unique_labels,
    untrained_layer,
)
from pages.learn.block.stream import run
from serving import models
from ui.text.formatting import format_shape

if TYPE_CHECKING:
    from torch import Tensor

_2017 = "attention_core/model/original_transformer.py"
_BLOCK, _MODEL = "attention_core/model/block.py", "attention_core/model/transformer.py"
# The functions (file, name) that compute a layer's tensors. All layers share the functions of
# attention and the feed-forward network.
_LAYER = (_BLOCK, "Block.forward")
_DECODER = (_2017, "DecoderLayer.steps")
_ATTENTION = ("attention_core/attention.py", "MultiHeadAttention.forward")
_FEED_FORWARD = ("attention_core/model/layers.py", "FeedForward.forward")
HIDDEN = "feed-forward hidden"
_SHARED = {
    "outputs of the heads": _ATTENTION,
    "concatenated per word": _ATTENTION,
    "out projection": _ATTENTION,
    "outputs of the cross-attention heads": _ATTENTION,
    "cross-attention concatenated": _ATTENTION,
    "cross-attention out projection": _ATTENTION,
    HIDDEN: _FEED_FORWARD,
    "feed-forward output": _FEED_FORWARD,
}

# For each tensor of `layer_steps`: the letters of its axes, the anchor of the statement that
# computes it, and its inputs.
_PARTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "normalised for attention": ("TC", "normed input", ("input",)),
    "outputs of the heads": ("HTD", "context", ("input",)),
    "concatenated per word": ("TJ", "output", ("outputs of the heads",)),
    "out projection": ("TC", "output", ("concatenated per word",)),
    "residual sum": ("TC", "attention sum", ("input", "out projection")),
    "normalised sum": ("TC", "normed sum", ("residual sum",)),
    "outputs of the cross-attention heads": ("HTD", "context", ("normalised sum",)),
    "cross-attention concatenated": (
        "TJ",
        "output",
        ("outputs of the cross-attention heads",),
    ),
    "cross-attention out projection": ("TC", "output", ("cross-attention concatenated",)),
    "residual sum with cross-attention": (
        "TC",
        "cross sum",
        ("normalised sum", "cross-attention out projection"),
    ),
    "normalised cross-attention sum": (
        "TC",
        "normed cross sum",
        ("residual sum with cross-attention",),
    ),
    "normalised for feed-forward": ("TC", "normed sum", ("residual sum",)),
    HIDDEN: ("TF", "hidden", ()),
    "feed-forward output": ("TC", "down", (HIDDEN,)),
    "second residual sum": ("TC", "mlp sum", ("feed-forward output",)),
    "normalised output": ("TC", "normed output", ("second residual sum",)),
}
AXES = {"H": "head", "T": "token", "D": "column", "C": "width", "J": "head column",
         "F": "hidden unit"}  # fmt: skip


@dataclass(frozen=True)
class TensorStep:
    """One tensor of a layer without its batch axis, and where it was computed."""

    name: str
    values: np.ndarray
    axes: tuple[str, ...]
    source: tuple[str, str, str]  # file, function, anchor of the statement
    inputs: tuple[str, ...]

    @property
    def shape(self) -> str:
        """The sizes as text, for example "5 tokens × width of 512"."""
        return format_shape(self.axes, self.values.shape)

    @property
    def norms(self) -> np.ndarray:
        """The length of every token's vector, over all heads if there are any."""
        squares = np.square(self.values).sum(axis=-1)  # (T,), or (H, T) with heads
        return np.asarray(np.sqrt(squares.sum(axis=0) if squares.ndim == 2 else squares))


@dataclass(frozen=True)
class LayerSteps:
    """A layer's steps on a text, in order of computation."""

    title: str
    labels: tuple[str, ...]
    steps: tuple[TensorStep, ...]
    n_heads: int
    head_size: int
    pre_norm: bool
    activation: ActivationCurve  # of the last token
    memory: TensorStep | None = None  # the encoder's output, for a layer with cross-attention
    memory_labels: tuple[str, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """One row per step."""
        return pd.DataFrame(
            {
                "step": range(len(self.steps)),
                "tensor": [step.name for step in self.steps],
                "shape": [step.shape for step in self.steps],
                "mean norm": [float(step.norms.mean()) for step in self.steps],
            }
        )

    @property
    def summary(self) -> str:
        """A one-line description of the layer."""
        order = "pre" if self.pre_norm else "post"
        memory = (
            f" Cross-attention reads {len(self.memory_labels)} encoder tokens."
            if self.memory
            else ""
        )
        heads = f"{self.n_heads} head{'s' if self.n_heads > 1 else ''} of {self.head_size}"
        return f"{self.title}: {order}-norm, {heads}.{memory}"

    def find(self, name: str) -> TensorStep:
        """Find a step by name."""
        return next(step for step in self.steps if step.name == name)


def layer_2017(kind: str, text: str, n_heads: int, d_ff: int) -> LayerSteps:
    """Run an untrained layer of the 2017 Transformer on the words of a text.

    The decoder layer reads the first half of the words; its memory is the encoder layer's output
    for all of them. Errors: as in `split_words`.
    """
    import torch

    from attention_core.model.original_transformer import (
        layer_input,
        layer_steps,
        original_config,
    )

    words, config = split_words(text), original_config(n_heads=n_heads, d_ff=d_ff)
    layer = untrained_layer(kind, n_heads, d_ff)
    with torch.inference_mode():
        x = layer_input(words, WIDTH_2017)[None]
        encoded, layer_words, where = None, words, _LAYER
        if kind == DECODER_2017:
            encoder = untrained_layer(ENCODER_2017, n_heads, d_ff)
            memory = encoder(x)  # [memory]
            encoded = TensorStep(
                "memory, from the encoder",
                memory[0].numpy(),
                (AXES["T"], AXES["C"]),
                ("pages/learn/block/steps.py", "layer_2017", "memory"),
                (),
            )
            layer_words, where = words[: (len(words) + 1) // 2], _DECODER
            steps = layer.steps(x[:, : len(layer_words)], memory)
        else:
            steps = layer_steps(layer.record(x), config)
        labels = unique_labels(layer_words)
        bent = _activation(layer, config.activation, steps, labels)
    origin = (_2017, "layer_input", "input")
    return LayerSteps(
        title=f"{kind}, untrained weights",
        labels=labels,
        steps=_steps(steps, where, origin, pre_norm=False),
        n_heads=n_heads,
        head_size=WIDTH_2017 // n_heads,
        pre_norm=False,
        activation=bent,
        memory=encoded,
        memory_labels=unique_labels(words) if encoded else (),
    )


def layer_of(name: str, text: str, layer: int) -> LayerSteps:
    """Run a layer of a loaded model on a text. Errors: as in `run` and loading."""
    import torch

    from attention_core.model.original_transformer import layer_steps

    stream, core = run(name, text), models.get(name).core
    config = core.config
    with torch.inference_mode():
        steps = layer_steps(stream.run.layer(layer), config)
        bent = _activation(core.blocks[layer], config.activation, steps, stream.labels)
    pre = config.norm_order == "pre"
    embedded = (_MODEL, "Transformer.forward", "embedding")
    passed_on = (_MODEL, "Transformer.run_layers", "layer output")
    return LayerSteps(
        title=f"{stream.title}, layer {layer}",
        labels=stream.labels,
        steps=_steps(
            steps,
            _LAYER,
            passed_on if layer else embedded,
            pre_norm=pre,
        ),
        n_heads=config.n_heads,
        head_size=config.d_head,
        pre_norm=pre,
        activation=bent,
    )


def _activation(
    layer: Any, name: str, tensors: dict[str, Tensor], labels: tuple[str, ...]
) -> ActivationCurve:
    names = list(tensors)
    reads = tensors[names[names.index(HIDDEN) - 1]]  # (B, T, C)
    weights = layer.mlp.up.matrix
    return activation_curve(
        name, layer.mlp, reads[0, -1].to(weights.device, weights.dtype), labels[-1]
    )


def _steps(
    tensors: dict[str, Tensor],
    function: tuple[str, str],
    origin: tuple[str, str, str],
    *,
    pre_norm: bool,
) -> tuple[TensorStep, ...]:
    steps = []
    names = list(tensors)
    for number, (name, tensor) in enumerate(tensors.items()):
        letters, line, made_of = _PARTS.get(name, ("TC", "", ()))
        where = _SHARED.get(name, function)
        if name == "outputs of the heads" and pre_norm:
            made_of = ("normalised for attention",)
        elif name == HIDDEN:
            made_of = (names[number - 1],)
        elif name == "second residual sum":
            made_of = (names[number - (4 if pre_norm else 3)], *made_of)
        steps.append(
            TensorStep(
                name=name,
                values=tensor[0].float().cpu().numpy(),
                axes=tuple(AXES[letter] for letter in letters),
                source=(*where, line) if line else origin,
                inputs=made_of,
            )
        )
    return tuple(steps)
