"""Check a model's inputs: ids, masks and caches have to fit the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from attention_core.cache import KVCache
from attention_core.checks import require_int
from attention_core.model.config import TransformerConfig

_ID_TYPES = (torch.int64, torch.int32)
_MASK_TYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, *_ID_TYPES)


def prompt_ids(token_ids: Sequence[int] | Tensor, vocab_size: int) -> list[int]:
    """Convert a prompt to a list of ids.

    Accepts a sequence, a NumPy array, or a tensor (T) or (1, T) of any integer type on any device.
    Raises: ValueError with the value if the prompt is empty, isn't one row of whole numbers, or has
    an id outside the vocabulary.
    """
    inputs: Any = token_ids
    is_array = hasattr(inputs, "tolist") and hasattr(inputs, "shape")
    if is_array:
        usable = len(inputs.shape) == 1 or (len(inputs.shape) == 2 and inputs.shape[0] == 1)
    else:
        usable = isinstance(inputs, Sequence) and not isinstance(inputs, (str, bytes))
    if not usable:
        details = [f"{name} {getattr(inputs, name, 'unknown')}" for name in ("shape", "dtype")]
        raise ValueError(
            "a prompt must be a list, a tuple or a tensor (tokens) or (1, tokens) of int64, "
            f"got {type(inputs).__name__} of {' and '.join(details)}"
        )
    ids = inputs.reshape(-1).tolist() if is_array else list(inputs)
    if not ids:
        raise ValueError("the prompt is empty: pass at least 1 token")
    for token_id in ids:
        require_int("a token id", token_id, least=0, most=vocab_size - 1)
    return ids


def stop_set(stop_ids: Collection[int]) -> frozenset[int]:
    """Convert stop ids from any collection, tensor (N) or array to a set.

    Raises: ValueError for a single number, or if an id isn't a whole number.
    """
    ids: Any = stop_ids.tolist() if hasattr(stop_ids, "tolist") else stop_ids
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Collection):
        raise ValueError(f"stop_ids must be a list or a set of token ids, got {stop_ids!r}")
    for token_id in ids:
        require_int("a stop id", token_id, least=0)
    return frozenset(map(int, ids))


def visible_positions(attention_mask: Tensor, n_new: int) -> Tensor:
    """Positions of the last T columns: mask (B, S) -> (B, T), with T = `n_new`.

    Positions in each row start at its first visible token. Padding on the left gets position 0.
    Padding on the right, and hidden tokens between visible ones, are counted.
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
    device: torch.device | None = None,
) -> None:
    """Check the inputs of a forward pass: ids (B, T), attention_mask (B, all keys).

    device: the model's device, or None to skip that check.

    Checking the range of ids and masks reads their values. On a GPU that waits for the device, so
    only passes without cached tokens are checked there, not decode steps. On the meta device and
    during compilation there are no values to check.
    Raises: ValueError with the numbers if an input doesn't fit the model.
    """
    offset = 0 if cache is None else cache.length
    if device is not None:
        inputs = {"token_ids": token_ids, "attention_mask": attention_mask}
        inputs |= {"segment_ids": segment_ids, "positions": positions}
        check_devices(device, inputs, cache)
    _check_ids("token_ids", token_ids, config.vocab_size, offset)
    batch_size, n_new = token_ids.shape
    n_keys, limit = offset + n_new, config.context_length
    if n_keys > limit:
        raise ValueError(
            f"{offset} cached + {n_new} new tokens exceed the context length of {limit}"
        )
    if cache is not None:
        check_cache(config, cache)
    if attention_mask is not None:
        _check_mask(attention_mask, (batch_size, n_keys), offset)
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


def check_devices(
    device: torch.device, tensors: Mapping[str, Tensor | None], cache: KVCache | None = None
) -> None:
    """Raise ValueError with both devices if an input isn't on the model's device."""
    buffer = None if cache is None else cache.buffers[0][0]
    for name, tensor in {**tensors, "the cache": buffer}.items():
        if isinstance(tensor, Tensor) and tensor.device != device:
            raise ValueError(
                f"{name} is on {tensor.device}, but the model is on {device}: both must be on the "
                "same device"
            )


def check_cache(config: TransformerConfig, cache: KVCache) -> None:
    """Raise ValueError with the numbers if the cache doesn't fit the model."""
    if not config.causal:
        raise ValueError("a bidirectional model can't use a cache, because old tokens see new ones")
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
        raise ValueError(
            f"{name} must be a tensor of whole numbers (int64 or int32), got {given_type}"
        )
    if ids.dim() != 2 or not ids.numel():
        raise ValueError(
            f"{name} must be (batch, tokens) with at least one token, got shape {tuple(ids.shape)}"
        )
    if _is_unread(ids, offset):
        return
    least, most = _range(ids)
    if least < 0 or most >= n_values:
        raise ValueError(f"{name} must be between 0 and {n_values - 1}, got {least} to {most}")


def _check_mask(mask: Tensor, shape: tuple[int, int], offset: int) -> None:
    if not isinstance(mask, Tensor) or mask.shape != shape:
        inputs = tuple(mask.shape) if isinstance(mask, Tensor) else type(mask).__name__
        raise ValueError(f"attention_mask must be (batch, all keys) = {shape}, got {inputs}")
    values = ""
    if mask.dtype in _MASK_TYPES:
        if mask.dtype == torch.bool or _is_unread(mask, offset):
            return
        least, most = _range(mask)
        if least >= 0 and most <= 1:
            return
        values = f" from {least} to {most}"
    elif mask.is_floating_point() and not _is_unread(mask, 0):
        values = " from {} to {}".format(*_range(mask.float()))
    raise ValueError(
        "attention_mask must be whole numbers or bool, 1 for a token and 0 for padding, got "
        f"{mask.dtype}{values}"
    )


def _is_unread(tensor: Tensor, offset: int) -> bool:
    """Whether there are no values to check, or reading them would delay a decode step."""
    if tensor.is_meta or torch.compiler.is_compiling():
        return True
    return bool(offset) and tensor.device.type != "cpu"


def _range(tensor: Tensor) -> list[Any]:
    """The smallest and the largest value, in one transfer."""
    smallest_and_largest: list[Any] = torch.stack(tensor.aminmax()).tolist()
    return smallest_and_largest
