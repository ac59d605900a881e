"""Recorded forward passes over visitors' texts, cached for all visitors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pretrained import Pretrained, Tokens
from serving import compute, models
from serving.backend import router as backend
from serving.cache import cached, size_of
from serving.limits import MAX_MAP_TOKENS
from serving.prompts import prepare_prompt
from serving.recording import RunTensors

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core import AttentionRecord
    from attention_core.model.block import LayerRecord

RunKey = tuple[str, ...]  # model, its source, device, dtype, text


@dataclass
class TensorSlot:
    """The tensors of a run while it is cached."""

    tensors: RunTensors | None


@dataclass(frozen=True, eq=False)
class Run:
    """A recorded forward pass of a model over a text.

    key: the run's cache key. scale: the factor that scores are multiplied by. For drawing, the
    tensors are also available as read-only arrays: `weights` (L, H, T, S), `q` (L, H, T, D), `k`
    and `v` (L, H_kv, S, D), `value_norms` (L, H, S).

    While a page is open, its downloads and fragments keep references to its runs. So a run releases
    its tensors when the cache evicts it, and records them again when they're needed.
    """

    key: RunKey
    title: str
    tokens: Tokens
    scale: float
    causal: bool
    slot: TensorSlot

    @property
    def tensors(self) -> RunTensors:
        """The recorded tensors; errors as when loading the model."""
        return self.slot.tensors or self._rerun().tensors

    def _rerun(self) -> Run:
        """The same run, from the cache or recorded again."""
        with compute.yield_slot():  # another thread may be recording it already
            return run_forward(self.key, self.pretrained, self.tokens)

    def release(self) -> None:
        """Release the tensors; called when the cache evicts the run."""
        self.slot.tensors = None

    @property
    def nbytes(self) -> int:
        """Size within other cached values: 0, because the run's own cache entry counts it."""
        return 0

    @property
    def model(self) -> str:
        """The model's name."""
        return self.key[0]

    @property
    def pretrained(self) -> Pretrained:
        """The model with the weights of this run, even if its files have changed since.

        Raises: FilesChanged if it's no longer in memory and its files have changed; otherwise the
        errors of loading a model.
        """
        return models.by_key((self.key[0], self.key[1]))

    @property
    def model_key(self) -> RunKey:
        """The part of the cache key that identifies the model, without the text."""
        return self.key[:-1]

    @property
    def weights(self) -> np.ndarray:
        """The attention weights, (L, H, T, S)."""
        return _view(self.tensors.weights)

    @property
    def q(self) -> np.ndarray:
        """The queries, (L, H, T, D)."""
        return _view(self.tensors.q)

    @property
    def k(self) -> np.ndarray:
        """The keys, (L, H_kv, S, D)."""
        return _view(self.tensors.k)

    @property
    def v(self) -> np.ndarray:
        """The values, (L, H_kv, S, D)."""
        return _view(self.tensors.v)

    @property
    def value_norms(self) -> np.ndarray:
        """The length of the vector that each head adds per key, (L, H, S)."""
        return _view(self.tensors.value_norms)

    def kv_head(self, head: int) -> int:
        """The key/value head that a query head uses."""
        return head // (self.tensors.q.shape[1] // self.tensors.k.shape[1])

    def head(self, layer: int, head: int) -> AttentionRecord:
        """Every step of one head's attention: (T, D) and (T, S).

        The scores are recomputed from the recorded queries and keys, which takes less than a
        millisecond. Storing them for every head would double the memory of a run (71 MB of weights
        for 256 tokens of SmolLM2).
        Raises: NotFiniteError for scores that overflow.
        """
        from attention_core import attend
        from attention_core.checks import require_finite
        from attention_core.masks import causal_mask

        tensors, kv_head = self.tensors, self.kv_head(head)
        q, k, v = tensors.q[layer, head], tensors.k[layer, kv_head], tensors.v[layer, kv_head]
        mask = causal_mask(len(q), len(k)) if self.causal else None
        record = attend(q, k, v, mask=mask, scale=self.scale)
        require_finite("scores", record.scores)
        return record

    def state(self, number: int) -> Tensor:
        """The input of layer `number`, or the output of the last layer, (1, T, C).

        It has the model's device and dtype, so the model can continue from there.
        """
        model = self.pretrained
        return self.tensors.states[number][None].to(model.device, model.dtype)

    def layer(self, number: int) -> LayerRecord:
        """Every tensor of one layer; reruns the layer from its recorded input.

        This takes a few milliseconds. Storing the tensors of every layer would need four times the
        memory of a run (500 MB for 256 tokens of SmolLM2).
        """
        import torch

        core, x = self.pretrained.core, self.state(number)
        places = torch.arange(len(self.tokens), device=x.device)
        with torch.inference_mode():
            return core.block(number).record(x, core.new_pass(x, places))


def run(
    name: str,
    text: str,
    limit: int = MAX_MAP_TOKENS,
    purpose: str = "a head map",
    *,
    empty: str = "",
) -> Run:
    """Run model `name` on `text`; `purpose` allows at most `limit` tokens.

    Raises: OverLimit for a text that is too long, ValueError for one without tokens, and the errors
    of loading a model.
    """
    where = models.key(name)
    model = models.by_key(where)
    tokens = prepare_prompt(model, text, limit, purpose, empty=empty).tokens
    return run_forward((*where, str(model.device), str(model.dtype), text), model, tokens)


@cached(key=lambda key, model, tokens: key, size=lambda run: size_of(run.tensors))
def run_forward(key: RunKey, model: Pretrained, tokens: Tokens) -> Run:
    """Record a forward pass here or on the model server; errors as in `recording.record`."""
    recording = backend.record_pass(model, tokens.ids)
    return Run(
        key=key,
        title=model.spec.title,
        tokens=tokens,
        scale=recording.scale,
        causal=model.core.config.causal,
        slot=TensorSlot(recording.tensors),
    )


def _view(tensor: Tensor) -> np.ndarray:
    """A read-only array that shares the tensor's memory."""
    array: np.ndarray = tensor.numpy()
    array.setflags(write=False)
    return array
