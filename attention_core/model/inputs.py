"""What a model is given, checked before anything runs: ids, masks and caches that fit it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attention_core.cache import KVCache
from attention_core.checks import require_int
from attention_core.model.config import TransformerConfig

_ID_TYPES = (torch.int64, torch.int32)


def prompt_ids(token_ids: Sequence[int] | Tensor, vocab_size: int) -> list[int]:
    """The ids of a prompt as a list, from a sequence or a tensor (T) or (1, T) on any device.

    Raises: ValueError, with what was given, for no ids at all, for anything that is not whole
    numbers in one row, or an id outside the vocabulary.
    """
    if isinstance(token_ids, Tensor):
        is_row = token_ids.dim() == 1 or (token_ids.dim() == 2 and len(token_ids) == 1)
        usable = is_row and token_ids.dtype in _ID_TYPES
    else:
        usable = isinstance(token_ids, Sequence) and not isinstance(token_ids, (str, bytes))
    if not usable:
        details = [f"{name} {getattr(token_ids, name, 'unknown')}" for name in ("shape", "dtype")]
        raise ValueError(
            "a prompt must be a list, a tuple or a tensor (tokens) or (1, tokens) of int64, "
            f"got {type(token_ids).__name__} of {' and '.join(details)}"
        )
    ids = token_ids.flatten().tolist() if isinstance(token_ids, Tensor) else list(token_ids)
    if not ids:
        raise ValueError("the prompt has no tokens: at least 1 is needed")
    for token_id in ids:
        require_int("a token id", token_id, least=0, most=vocab_size - 1)
    return ids


def visible_positions(attention_mask: Tensor, n_new: int) -> Tensor:
    """Positions that count from each row's first visible token: mask (B, S) -> (B, T), its last.

    Padding on the left is at 0. Padding on the right, and tokens hidden between others, count.
    """
    is_leading = attention_mask.cumsum(dim=1) == 0
    columns = torch.arange(attention_mask.shape[1], device=attention_mask.device)
    return (columns - is_leading.sum(dim=1, keepdim=True)).clamp(min=0)[:, -n_new:]


def check_inputs(
    config: TransformerConfig,
    token_ids: Tensor,
    cache: KVCache | None = None,
    attention_mask: Tensor | None = None,
    segment_ids: Tensor | None = None,
    positions: Tensor | None = None,
) -> None:
    """Check what a forward pass is given: ids (B, T), and attention_mask (B, all keys).

    Whether ids are in their range is looked up on the CPU. On another device that would wait for
    it: there only a pass without cached tokens is looked at, no decode step. On the meta device and
    while a pass is compiled ids have no values, and nothing is looked up.
    Raises: ValueError, with the numbers, for what does not fit the model.
    """
    offset = 0 if cache is None else cache.length
    _check_ids("token_ids", token_ids, config.vocab_size, offset)
    batch_size, n_new = token_ids.shape
    n_keys, limit = offset + n_new, config.context_length
    if n_keys > limit:
        raise ValueError(
            f"{offset} cached + {n_new} new tokens exceed the context length of {limit}"
        )
    if cache is not None:
        check_cache(config, cache)
    if attention_mask is not None and attention_mask.shape != (batch_size, n_keys):
        raise ValueError(
            f"attention_mask must be (batch, all keys) = ({batch_size}, {n_keys}), "
            f"got {tuple(attention_mask.shape)}"
        )
    if segment_ids is not None and not config.n_segments:
        raise ValueError("segment_ids do not fit a model without segments (n_segments is 0)")
    for name, ids, n_values in (
        ("segment_ids", segment_ids, config.n_segments),
        ("positions", positions, limit),
    ):
        if ids is None:
            continue
        _check_ids(name, ids, n_values, offset)
        if ids.shape != token_ids.shape:
            raise ValueError(
                f"{name} must be {tuple(token_ids.shape)} like token_ids, got {tuple(ids.shape)}"
            )


def check_cache(config: TransformerConfig, cache: KVCache) -> None:
    """Raises: ValueError, with the numbers, for a cache of a model of another shape."""
    if not config.causal:
        raise ValueError("a bidirectional model cannot use a cache: old tokens see new ones")
    if cache.n_layers != config.n_layers:
        raise ValueError(
            f"a cache of {cache.n_layers} layers does not fit a model of {config.n_layers}"
        )
    shapes = tuple((rows[0].shape[1], rows[0].shape[3]) for rows in cache.buffers)
    if shapes != config.cache_shapes:
        raise ValueError(
            f"a cache whose keys and values are {shapes} (heads, size) does not fit a model whose "
            f"keys and values are {config.cache_shapes}"
        )
    if cache.window not in (None, config.window):
        raise ValueError(
            f"a cache with a window of {cache.window} does not fit a model with a window of "
            f"{config.window}"
        )


def _check_ids(name: str, ids: Tensor, n_values: int, offset: int) -> None:
    if not isinstance(ids, Tensor) or ids.dtype not in _ID_TYPES:
        given_type = ids.dtype if isinstance(ids, Tensor) else type(ids).__name__
        raise ValueError(f"{name} must be a tensor of whole numbers (int64), got {given_type}")
    if ids.dim() != 2 or not ids.numel():
        raise ValueError(
            f"{name} must be (batch, tokens) with at least one token, got shape {tuple(ids.shape)}"
        )
    unseen = ids.is_meta or torch.compiler.is_compiling()
    if unseen or (offset and ids.device.type != "cpu"):
        return
    least, most = torch.stack(ids.aminmax()).tolist()  # one transfer for both
    if least < 0 or most >= n_values:
        raise ValueError(f"{name} must be between 0 and {n_values - 1}, got {least} to {most}")
