"""What a forward pass hands to every layer beside the layer's input.

Dimension letters: B batch, T new tokens, S all keys (cached and new).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from attention_core.attend import AttentionRecord, Edit, attend, recompute_after
from attention_core.cache import KVCache
from attention_core.checks import require_positive
from attention_core.positions.rotary import Rotation


@dataclass(frozen=True)
class Hooks:
    """Functions of the caller that a forward pass calls while it runs.

    `before_layer` is called with the number of each layer before that layer runs. It may report
    progress. It may also raise an error to stop the pass; a cache then stays as it was.

    `edit_heads` is called with the number of each layer and the record of its heads, before the
    heads are merged. It returns the record to continue with, `dataclasses.replace(record, ...)`,
    or None to change nothing. Any step may be replaced: q, k, v, scores, masked_scores,
    scaled_scores, attention, weights, context or scale. Every later step that was not replaced too
    is computed again, with the same mask, and the recorded layer holds what was computed.
    An edit of k or v changes this pass only: a cache stores the rows from before the edit. In
    absorbed latent attention k and v both hold the latent, but as two tensors: an edit of one
    leaves the other as it is.

    Raises: ValueError for a hook that can't be called. A pass raises ValueError, with the layer,
    when `edit_heads` returns something else, a step of another shape, dtype or device, or writes
    into the tensors of its record.
    """

    before_layer: Callable[[int], None] | None = None
    edit_heads: Edit | None = None

    def __post_init__(self) -> None:
        """Check that the hooks can be called."""
        for field in fields(self):
            hook = getattr(self, field.name)
            if hook is not None and not callable(hook):
                raise ValueError(f"{field.name} must be a function or None, got {hook!r}")


NO_HOOKS = Hooks()


def require_hooks(hooks: object) -> None:
    """Raise ValueError for anything that is not `Hooks`."""
    if not isinstance(hooks, Hooks):
        raise ValueError(
            f"hooks must be Hooks(before_layer=..., edit_heads=...), got {type(hooks).__name__}"
        )


@dataclass(frozen=True)
class Pass:
    """One forward pass: everything in it is the same for all layers.

    `mask` is (T, S) or (B, 1, T or 1, S), `True` where a query may see a key; None hides nothing.
    `rotation` holds the angles of rotary positions; None for a model with other positions.
    Raises: ValueError for `hooks` that are not `Hooks`.
    """

    mask: Tensor | None = None
    rotation: Rotation | None = None
    cache: KVCache | None = None
    hooks: Hooks = NO_HOOKS

    def __post_init__(self) -> None:
        """Check the hooks."""
        require_hooks(self.hooks)

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float | None = None
    ) -> AttentionRecord:
        """The attention of one layer with this pass's mask, edited if there is a hook for that.

        Shapes and errors as of `attention_core.attend`; errors of an edit as of `Hooks`.
        """
        if self.hooks.edit_heads is None:
            return attend(q, k, v, mask=self.mask, scale=scale)
        # torch counts the writes into a tensor, but not into one from inference mode
        with torch.inference_mode(False):
            record = attend(q, k, v, mask=self.mask, scale=scale)
            if q.is_inference() or self.cache is not None:
                # k and v may be the cache's own memory, which a hook must not change
                record = replace(record, q=q.clone(), k=k.clone(), v=v.clone())
        return recompute_after(_edited(self.hooks.edit_heads, layer, record), record, self.mask)


def _edited(edit: Edit, layer: int, record: AttentionRecord) -> AttentionRecord:
    """The record that a hook returns, checked against the one that it was called with."""
    steps = {f.name: getattr(record, f.name) for f in fields(record)}
    steps = {name: step for name, step in steps.items() if isinstance(step, Tensor)}
    n_writes = {name: step._version for name, step in steps.items()}
    edited = edit(layer, record)
    if changed := [name for name, step in steps.items() if step._version != n_writes[name]]:
        raise ValueError(
            f"edit_heads wrote into {' and '.join(changed)} of layer {layer}: "
            "return dataclasses.replace(record, ...) with new tensors instead"
        )
    if edited is None:
        return record
    if not isinstance(edited, AttentionRecord):
        raise ValueError(
            f"edit_heads must return an AttentionRecord or None, "
            f"got {type(edited).__name__} for layer {layer}"
        )
    require_positive(f"scale of layer {layer}", edited.scale)
    for name, step in steps.items():
        expected, got = _kind(step), _kind(getattr(edited, name))
        if got != expected:
            raise ValueError(
                f"edit_heads must return {name} of layer {layer} as {expected}, got {got}"
            )
    return replace(edited, output=None, projected=None)  # the layer's own fields


def _kind(value: object) -> str:
    """What a replaced step has to keep: "(2, 4, 7, 7) torch.float32 on cpu"."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    return f"{tuple(value.shape)} {value.dtype} on {value.device}"
