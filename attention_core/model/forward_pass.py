"""What a forward pass hands to every layer beside the layer's input.

Dimension letters: B batch, T new tokens, S all keys (cached and new).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial

import torch
from torch import Tensor

from attention_core.attend import AttentionRecord, Edit, attend, recompute_after
from attention_core.attention import Watch
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

    `edit` is called with the name of a tensor, its layer (None outside the layers) and the tensor.
    It returns a new tensor to continue with, or None to change nothing. The names, in the order of
    a pass: "embedding"; in every layer "input", "attention_output", "mlp_hidden" (B, T, F),
    "mlp_output", "output"; then "hidden", after the last norm, and "logits" (B, T, V). The others
    are (B, T, C); "input" and "output" are the residual stream.

    Raises: ValueError for a hook that can't be called. A pass raises ValueError, with the layer,
    when a hook returns something else, a tensor of another shape, dtype or device, or when
    `edit_heads` writes into the tensors of its record.
    """

    before_layer: Callable[[int], None] | None = None
    edit_heads: Edit | None = None
    edit: Callable[[str, int | None, Tensor], Tensor | None] | None = None

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
            "hooks must be Hooks(before_layer=..., edit_heads=..., edit=...), "
            f"got {type(hooks).__name__}"
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

    def watch(self, layer: int, *, record: bool) -> Watch | None:
        """What a layer's attention is called with: None if nobody wants more than its output."""
        if self.hooks.edit_heads is not None:
            shared = self.cache is not None
            return Watch(partial(_attend_edited, self.hooks.edit_heads, layer, shared))
        return Watch() if record else None

    def edited(self, name: str, layer: int | None, tensor: Tensor) -> Tensor:
        """The tensor to continue with, after the hook `edit` if there is one."""
        if self.hooks.edit is None:
            return tensor
        new = self.hooks.edit(name, layer, tensor)
        if new is None:
            return tensor
        if _kind(new) != _kind(tensor):
            where = "" if layer is None else f" of layer {layer}"
            raise ValueError(
                f"edit must return {name}{where} as {_kind(tensor)} or None, got {_kind(new)}"
            )
        return new


NOTHING = Pass()  # no mask, no positions, no cache, no hooks


def _attend_edited(
    edit: Edit,
    layer: int,
    shared: bool,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> AttentionRecord:
    """`attend`, then the caller's edit. shared: k and v may be the memory of a cache."""
    # torch counts the writes into a tensor, but not into one from inference mode
    with torch.inference_mode(False):
        record = attend(q, k, v, mask=mask, scale=scale, dropout_p=dropout_p)
        if q.is_inference() or shared:
            # a hook must not change k and v for later passes
            record = replace(record, q=q.clone(), k=k.clone(), v=v.clone())
    return recompute_after(_edited(edit, layer, record), record, mask)  # [recomputed]


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
