"""Everything that a forward pass hands to each layer in addition to its input.

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
    """Callbacks that a forward pass calls while it runs.

    before_layer: called with the index of each layer before it runs. It can report progress, or
    raise an error to stop the pass, which leaves a cache unchanged.

    edit_heads: called with the index of each layer and the record of its heads, before the heads
    are merged. Returns the record to continue with, from `dataclasses.replace(record, ...)`, or
    None to change nothing. It can replace q, k, v, scores, masked_scores, scaled_scores, attention,
    weights, context or scale. Later steps that aren't replaced are recomputed with the same mask,
    and the layer's record contains the new values. Edits of k or v affect this pass only, because
    the cache stores the original rows. In absorbed latent attention, k and v both contain the
    latent, but as separate tensors, so editing one doesn't change the other.

    edit: called with a tensor's name, its layer (None outside the layers) and the tensor. Returns a
    new tensor to continue with, or None to change nothing. The names, in order: "embedding"; in
    every layer "input", "attention_output", "mlp_hidden" (B, T, F), "mlp_output", "output"; then
    "hidden", after the last norm, and "logits" (B, T, V). All others are (B, T, C); "input" and
    "output" are the residual stream.

    Raises: ValueError if a hook isn't callable. During a pass, ValueError with the layer if a hook
    returns something else, or a tensor with a different shape, dtype or device, or if `edit_heads`
    modifies the tensors of its record in place.

    >>> from attention_core import Transformer, gpt2_config
    >>> model = Transformer(gpt2_config(d_model=8, n_layers=2, n_heads=2, vocab_size=16))
    >>> layers = []
    >>> _ = model(torch.tensor([[1, 2, 3]]), hooks=Hooks(before_layer=layers.append))
    >>> layers
    [0, 1]
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
    """Raise ValueError if `hooks` isn't a `Hooks` object."""
    if not isinstance(hooks, Hooks):
        raise ValueError(
            "hooks must be Hooks(before_layer=..., edit_heads=..., edit=...), "
            f"got {type(hooks).__name__}"
        )


@dataclass(frozen=True)
class PassContext:
    """The inputs of one forward pass that are the same for every layer.

    mask: (T, S) or (B, 1, T or 1, S), `True` where a query may see a key; None hides nothing.
    rotation: the angles of rotary positions; None if the model doesn't use them.

    Raises: ValueError if `hooks` isn't a `Hooks` object.
    """

    mask: Tensor | None = None
    rotation: Rotation | None = None
    cache: KVCache | None = None
    hooks: Hooks = NO_HOOKS

    def __post_init__(self) -> None:
        """Check the hooks."""
        require_hooks(self.hooks)

    def watch(self, layer: int, *, record: bool) -> Watch | None:
        """The watch for a layer's attention, or None if only its output is needed."""
        if self.hooks.edit_heads is not None:
            shared = self.cache is not None
            return Watch(partial(_attend_edited, self.hooks.edit_heads, layer, shared))
        return Watch() if record else None

    def apply_edit(self, name: str, layer: int | None, tensor: Tensor) -> Tensor:
        """The tensor to continue with: the result of the `edit` hook, if there is one."""
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


NO_CONTEXT = PassContext()  # no mask, positions, cache or hooks


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
    """Run `attend`, then the edit. shared: k and v may share memory with a cache."""
    # torch counts in-place writes, except for tensors created in inference mode
    with torch.inference_mode(False):
        record = attend(q, k, v, mask=mask, scale=scale, dropout_p=dropout_p)
        if q.is_inference() or shared:
            # a hook must not change k and v for later passes
            record = replace(record, q=q.clone(), k=k.clone(), v=v.clone())
    return recompute_after(_checked_edit(edit, layer, record), record, mask)  # [recomputed]


def _checked_edit(edit: Edit, layer: int, record: AttentionRecord) -> AttentionRecord:
    """The record that a hook returns, checked against the original one."""
    steps = {f.name: getattr(record, f.name) for f in fields(record)}
    steps = {name: step for name, step in steps.items() if isinstance(step, Tensor)}
    n_writes = {name: step._version for name, step in steps.items()}
    edited = edit(layer, record)
    if changed := [name for name, step in steps.items() if step._version != n_writes[name]]:
        raise ValueError(
            f"edit_heads modified {' and '.join(changed)} of layer {layer} in place: "
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
    return replace(edited, output=None, projected=None)  # only the layer sets these fields


def _kind(value: object) -> str:
    """The properties that an edit must preserve, as in "(2, 4, 7, 7) torch.float32 on cpu"."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    return f"{tuple(value.shape)} {value.dtype} on {value.device}"
