"""Runs of a model on a visitor's text: one forward pass each, kept for all visitors and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pretrained import Pretrained, Tokens
from serving import models, turns
from serving.cache import kept, size_of
from serving.limits import MAX_MAP_TOKENS, RUN_CACHE_BYTES
from serving.prompts import prepare

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core import AttentionRecord
    from attention_core.model.block import LayerRecord
    from attention_core.model.transformer import Transformer

RunKey = tuple[str, ...]  # model, where its weights are, device, dtype, text


@dataclass(frozen=True)
class RunTensors:
    """The tensors kept of one forward pass over T tokens: float32, on the CPU, never changed.

    L layers, H query heads, H_kv key/value heads, S = T keys, D head size, C width. Queries and
    keys are rotated where the model does so.
    """

    weights: Tensor  # (L, H, T, S)  the attention weights
    q: Tensor  # (L, H, T, D)
    k: Tensor  # (L, H_kv, S, D)
    v: Tensor  # (L, H_kv, S, D)
    value_norms: Tensor  # (L, H, S)  the lengths ||v_j W_O|| of what a head writes for a key
    states: Tensor  # (L + 1, T, C)  the residual stream: before layer 0, and after each layer
    attention_norms: Tensor  # (L, T)  the lengths of what attention adds to each token's stream
    mlp_norms: Tensor  # (L, T)  the same of the feed-forward network


@dataclass(frozen=True, eq=False)
class Run:
    """One forward pass of a model over a text, and what was recorded of it.

    key: what stands for the run in caches; it was looked up once, when the run was made or found.
    tensors: for whoever computes with them. The same numbers are there as read-only arrays under
    the same names, for whoever draws them: `weights` (L, H, T, S), `q` (L, H, T, D), `k` and `v`
    (L, H_kv, S, D), `value_norms` (L, H, S). scale: what the scores are multiplied with.
    """

    key: RunKey
    title: str
    tokens: Tokens
    tensors: RunTensors
    scale: float
    causal: bool

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.key[0]

    @property
    def model_key(self) -> RunKey:
        """What stands for the model in caches, whatever the text."""
        return self.key[:-1]

    @cached_property
    def weights(self) -> np.ndarray:
        """The attention weights, (L, H, T, S)."""
        return _view(self.tensors.weights)

    @cached_property
    def q(self) -> np.ndarray:
        """The queries, (L, H, T, D)."""
        return _view(self.tensors.q)

    @cached_property
    def k(self) -> np.ndarray:
        """The keys, (L, H_kv, S, D)."""
        return _view(self.tensors.k)

    @cached_property
    def v(self) -> np.ndarray:
        """The values, (L, H_kv, S, D)."""
        return _view(self.tensors.v)

    @cached_property
    def value_norms(self) -> np.ndarray:
        """The lengths of what each head writes for each key, (L, H, S)."""
        return _view(self.tensors.value_norms)

    def kv_head(self, head: int) -> int:
        """The key/value head that a query head reads."""
        return head // (self.tensors.q.shape[1] // self.tensors.k.shape[1])

    def head(self, layer: int, head: int) -> AttentionRecord:
        """Attention of one head, every step of it: (T, D) and (T, S).

        The scores are computed again from the recorded queries and keys. To keep them for every
        head would double the memory of a run (71 MB of weights for 256 tokens of SmolLM2), and
        those of one head take less than a millisecond.
        """
        from attention_core import attend
        from attention_core.masks import causal_mask

        tensors, kv_head = self.tensors, self.kv_head(head)
        q, k, v = tensors.q[layer, head], tensors.k[layer, kv_head], tensors.v[layer, kv_head]
        mask = causal_mask(len(q), len(k)) if self.causal else None
        return attend(q, k, v, mask=mask, scale=self.scale)

    def state(self, number: int) -> Tensor:
        """What enters layer `number`, (1, T, C), or leaves the last: as the model itself holds it.

        On its device and in its type, for whoever lets the model go on from there.
        """
        model = models.loaded((self.key[0], self.key[1]))
        return self.tensors.states[number][None].to(model.device, model.dtype)

    def layer(self, number: int) -> LayerRecord:
        """Every tensor of one layer, which runs again from its recorded input.

        That takes some milliseconds. To keep it for every layer would need four times the memory
        of a run (500 MB for 256 tokens of SmolLM2).
        """
        import torch

        core, x = models.loaded((self.key[0], self.key[1])).core, self.state(number)
        places = torch.arange(len(self.tokens), device=x.device)
        with torch.inference_mode():
            record: LayerRecord = core.blocks[number](x, core.new_pass(x, places))
        return record


def run(
    name: str,
    text: str,
    limit: int = MAX_MAP_TOKENS,
    purpose: str = "a head map",
    *,
    empty: str = "",
) -> Run:
    """Model `name` on `text`, of which `purpose` takes at most `limit` tokens.

    Raises: OverLimit for a text that is too long, ValueError for one without any token, and what
    loading a model raises.
    """
    where = models.key(name)
    model = models.loaded(where)
    tokens = prepare(model, text, limit, purpose, empty=empty).tokens
    return forward((*where, str(model.device), str(model.dtype), text), model, tokens)


@kept(RUN_CACHE_BYTES, key=lambda key, model, tokens: key, size=lambda run: size_of(run.tensors))
def forward(key: RunKey, model: Pretrained, tokens: Tokens) -> Run:
    """One recorded forward pass, in a turn of its own."""
    import torch

    with turns.turn(), torch.inference_mode():
        ids = torch.tensor([tokens.ids], device=model.device)
        # nobody reads the logits of all positions, a third of the work for a large vocabulary
        output = model.core(ids, record=True, last_only=True)
        tensors = recorded(model.core, output.hidden_states, output.layers)
    return Run(
        key=key,
        title=model.spec.title,
        tokens=tokens,
        tensors=tensors,
        scale=output.records[0].scale,
        causal=model.core.config.causal,
    )


def recorded(
    core: Transformer, states: Sequence[Tensor], layers: Sequence[LayerRecord]
) -> RunTensors:
    """What is kept of a pass: `states` (1, T, C) before the first layer and after each."""
    from attention_core.experiments.compare.contributions import value_norms
    from attention_core.experiments.learn.block.residual_stream import token_norms

    records = [layer.attention for layer in layers]
    norms = [
        value_norms(record.v, core.out_weight(layer))[0] for layer, record in enumerate(records)
    ]
    added = [record.output for record in records if record.output is not None]  # all have one
    return RunTensors(
        weights=_stacked([record.weights[0] for record in records]),
        q=_stacked([record.q[0] for record in records]),
        k=_stacked([record.k[0] for record in records]),
        v=_stacked([record.v[0] for record in records]),
        value_norms=_stacked(norms),
        states=_stacked([state[0] for state in states]),
        attention_norms=_stacked([token_norms(output[0]) for output in added]),
        mlp_norms=_stacked([token_norms(layer.mlp_output[0]) for layer in layers]),
    )


def _stacked(layers: Sequence[Tensor]) -> Tensor:
    """The layers as the first axis of one float32 tensor on the CPU."""
    import torch

    return torch.stack(list(layers)).float().cpu()


def _view(tensor: Tensor) -> np.ndarray:
    """The same memory as an array that cannot be written to."""
    array: np.ndarray = tensor.numpy()
    array.setflags(write=False)
    return array
