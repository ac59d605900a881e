"""The transformers model one generation step at a time, as `attention_core.stream` does the core.

`generate` of transformers hands out no time for each token, and cannot be interrupted inside one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

# torch and transformers are imported inside functions: importing this package has to stay cheap.
if TYPE_CHECKING:
    from torch import Tensor, nn

    from attention_core import Step, TransformerConfig


def reference_steps(
    reference: Any,
    config: TransformerConfig,
    token_ids: Sequence[int],
    *,
    max_new_tokens: int,
    cached: bool,
    attention: str = "sdpa",
    before_layer: Callable[[int], None] | None = None,
) -> Iterator[Step]:
    """Yield one `Step` a new token of GPT2LMHeadModel or LlamaForCausalLM, always the likeliest.

    With its own `DynamicCache`, or running the whole sequence again in every step. The logits are
    asked for at the last position alone, as `generate` does, and the clock goes around the model's
    call alone. `attention` is transformers' name of the implementation; the model has its earlier
    one between two steps. `config` is the core's for the same model: it counts the operations.
    `before_layer` is called before each layer and abandons the pass by raising.
    Raises: ValueError, before anything runs, for an empty prompt, no new token, or more tokens than
    the context can hold.
    """
    n_run = len(token_ids) + max_new_tokens - 1
    if not token_ids or max_new_tokens < 1 or n_run > config.context_length:
        raise ValueError(
            f"a prompt of {len(token_ids)} tokens with {max_new_tokens} new ones: both must be at "
            f"least 1, and all but the last fit the context of {config.context_length}"
        )
    return _steps(
        reference, config, list(token_ids), max_new_tokens, cached, attention, before_layer
    )


def _steps(
    reference: Any,
    config: TransformerConfig,
    sequence: list[int],
    max_new_tokens: int,
    cached: bool,
    attention: str,
    before_layer: Callable[[int], None] | None,
) -> Iterator[Step]:
    import torch
    from transformers import DynamicCache

    from attention_core import Step, forward_flops

    cache = DynamicCache(config=reference.config) if cached else None
    for number in range(max_new_tokens):
        new = sequence[-1:] if cached and number else sequence
        ids = torch.tensor([new], device=reference.device)
        with torch.inference_mode(), _implementation(reference, attention):
            logits, seconds = _timed(reference, ids, cache, before_layer)
            token_id = int(logits.argmax())
            logprob = float(logits.log_softmax(dim=-1)[token_id])
        n_new, n_keys = len(new), len(sequence)
        sequence.append(token_id)
        yield Step(
            kind="decode" if number else "prefill",
            token_id=token_id,
            logprob=logprob,
            seconds=seconds,
            n_new=n_new,
            n_keys=n_keys,
            cache_length=0 if cache is None else cache.get_seq_length(),
            flops=forward_flops(config, n_new, n_keys),
            logits=logits,
        )


def _timed(
    reference: Any, ids: Tensor, cache: Any, before_layer: Callable[[int], None] | None
) -> tuple[Tensor, float]:
    """Logits (V) of the last position, float32 on the CPU, and the seconds of the model's call."""
    from attention_core.costs.stopwatch import synchronize

    with _with_layer_hook(_layers(reference), before_layer):
        synchronize(ids.device)
        begin = time.perf_counter()
        output = reference(
            input_ids=ids, past_key_values=cache, use_cache=cache is not None, logits_to_keep=1
        )
        synchronize(ids.device)
        seconds = time.perf_counter() - begin
    return output.logits[0, -1].float().cpu(), seconds


def _layers(reference: Any) -> nn.ModuleList:
    inner = reference.base_model
    layers: nn.ModuleList = inner.h if hasattr(inner, "h") else inner.layers
    return layers


@contextmanager
def _implementation(reference: Any, attention: str) -> Iterator[None]:
    """Inside, the model uses this kind of attention; afterwards it has its earlier kind again."""
    before = reference.config._attn_implementation
    reference.set_attn_implementation(attention)
    try:
        yield
    finally:
        reference.set_attn_implementation(before)


@contextmanager
def _with_layer_hook(
    layers: nn.ModuleList, before_layer: Callable[[int], None] | None
) -> Iterator[None]:
    """Inside, `before_layer` is called before each layer of the model runs."""
    if before_layer is None:
        yield
        return

    def hook(number: int) -> Callable[[Any, Any], None]:
        return lambda module, arguments: before_layer(number)

    hooks = [layer.register_forward_pre_hook(hook(i)) for i, layer in enumerate(layers)]
    try:
        yield
    finally:
        for handle in hooks:
            handle.remove()
