"""What a forward pass hands to every layer beside the layer's input.

Dimension letters: B batch, T new tokens, S all keys (cached and new).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from attention_core.attend import Edit
from attention_core.cache import KVCache
from attention_core.positions.rotary import Rotation


@dataclass(frozen=True)
class Hooks:
    """Functions of the caller that a forward pass calls while it runs.

    `before_layer` is called with the number of each layer before that layer runs. It may report
    progress. It may also raise an error to stop the pass; a cache then stays as it was.
    `edit_heads` is called with the number of each layer and the record of its heads, before the
    heads are merged. The pass goes on with the record that it returns, and keeps this record.
    """

    before_layer: Callable[[int], None] | None = None
    edit_heads: Edit | None = None


NO_HOOKS = Hooks()


@dataclass(frozen=True)
class Pass:
    """One forward pass: everything in it is the same for all layers.

    `mask` is (T, S) or (B, 1, T or 1, S), `True` where a query may see a key; None hides nothing.
    `rotation` holds the angles of rotary positions; None for a model with other positions.
    """

    mask: Tensor | None = None
    rotation: Rotation | None = None
    cache: KVCache | None = None
    hooks: Hooks = NO_HOOKS
