"""Generates with a transformers model step by step, like `attention_core.stream` with the core.

The method `generate` of transformers doesn't report the time per token, and can't be interrupted
inside a step.
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
    """Yield one `Step` per new token of a GPT2LMHeadModel or LlamaForCausalLM, chosen greedily.

    Uses a `DynamicCache` if `cached`; otherwise every step reruns the whole sequence. Like
    `generate`, this only computes logits for the last position. Only the model call is timed.
    config: the core's configuration of the same model, used to count operations. attention:
    transformers' name of the attention implementation, which is only set during a step.
    before_layer: called before each layer; it may raise to end the pass.
    Raises: ValueError, before anything runs, for an empty prompt, no new tokens, or more tokens
    than fit into the context.
    """
    n_run = len(token_ids) + max_new_tokens - 1
    if not token_ids or max_new_tokens < 1 or n_run > config.context_length:
        raise ValueError(
            f"the prompt has {len(token_ids)} tokens and max_new_tokens is {max_new_tokens}; both "
            f"must be at least 1, and all tokens but the last must fit into the context of "
            f"{config.context_length}"
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
    """Logits (V) of the last position, float32 on the CPU, and the seconds of the model call."""
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
    """Switch the attention implementation inside a `with` block, and restore it afterwards."""
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
    """Call `before_layer` before each layer runs, inside a `with` block."""
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
