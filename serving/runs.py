"""Runs of a model on a visitor's text: one forward pass each, cached for all visitors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pretrained import Pretrained, Tokens
from serving import compute, models
from serving.backend import router as backend
from serving.cache import cached, size_of
from serving.limits import MAX_MAP_TOKENS
from serving.prompts import prepare
from serving.recording import RunTensors

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core import AttentionRecord
    from attention_core.model.block import LayerRecord

RunKey = tuple[str, ...]  # model, its source, device, dtype, text


@dataclass
class Recorded:
    """The tensors of a run while it is cached."""

    tensors: RunTensors | None


@dataclass(frozen=True, eq=False)
class Run:
    """One forward pass of a model over a text, and what was recorded of it.

    key: what stands for the run in caches; it was looked up once, when the run was made or found.
    scale: what the scores are multiplied with. The tensors are there as read-only arrays too, for
    whoever draws them: `weights` (L, H, T, S), `q` (L, H, T, D), `k` and `v` (L, H_kv, S, D),
    `value_norms` (L, H, S).

    An open page keeps the runs that it shows, in the files that it offers and in the parts that are
    painted anew by themselves, as long as it is open. So a run releases its tensors when the cache
    evicts it, and records them again when they are read.
    """

    key: RunKey
    title: str
    tokens: Tokens
    scale: float
    causal: bool
    recorded: Recorded

    @property
    def tensors(self) -> RunTensors:
        """What was recorded, for whoever computes with it. Errors as of loading the model."""
        return self.recorded.tensors or self._again().tensors

    def _again(self) -> Run:
        """The same run, from the cache or recorded now; others may be recording it already."""
        with compute.released():
            return forward(self.key, self.pretrained, self.tokens)

    def release(self) -> None:
        """Give the tensors up; the cache has evicted the run."""
        self.recorded.tensors = None

    @property
    def nbytes(self) -> int:
        """No bytes in other cached values that hold this run: its tensors are counted as a run."""
        return 0

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.key[0]

    @property
    def pretrained(self) -> Pretrained:
        """The model with the weights of this run, even if its files changed since.

        Errors as of loading it: FilesChanged when it is no longer in memory and its files are other
        ones now.
        """
        return models.loaded((self.key[0], self.key[1]))

    @property
    def model_key(self) -> RunKey:
        """What stands for the model in caches, whatever the text."""
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
        """What enters layer `number`, (1, T, C), or leaves the last: as the model itself holds it.

        On its device and in its type, for whoever lets the model go on from there.
        """
        model = self.pretrained
        return self.tensors.states[number][None].to(model.device, model.dtype)

    def layer(self, number: int) -> LayerRecord:
        """Every tensor of one layer, which runs again from its recorded input.

        That takes some milliseconds. To keep it for every layer would need four times the memory
        of a run (500 MB for 256 tokens of SmolLM2).
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
    """Model `name` on `text`, of which `purpose` takes at most `limit` tokens.

    Raises: OverLimit for a text that is too long, ValueError for one without any token, and what
    loading a model raises.
    """
    where = models.key(name)
    model = models.loaded(where)
    tokens = prepare(model, text, limit, purpose, empty=empty).tokens
    return forward((*where, str(model.device), str(model.dtype), text), model, tokens)


@cached(key=lambda key, model, tokens: key, size=lambda run: size_of(run.tensors))
def forward(key: RunKey, model: Pretrained, tokens: Tokens) -> Run:
    """One recorded forward pass, wherever models run; errors as of `recording.record`."""
    recording = backend.record(model, tokens.ids)
    return Run(
        key=key,
        title=model.spec.title,
        tokens=tokens,
        scale=recording.scale,
        causal=model.core.config.causal,
        recorded=Recorded(recording.tensors),
    )


def _view(tensor: Tensor) -> np.ndarray:
    """The same memory as an array that cannot be written to."""
    array: np.ndarray = tensor.numpy()
    array.setflags(write=False)
    return array
