"""Generation with a KV cache that records the attention of every step.

Each decode step runs only the newest token, as its single query. The recorded weights are those
that the steps computed; nothing is recomputed afterwards.

Dimension letters: L layers, H query heads, P prompt tokens, N new tokens, S = P + N - 1 tokens that
were run (the last new token is chosen but never run).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attention_core.analysis.contributions import value_norms
from attention_core.attend import AttentionRecord
from attention_core.generation import Step, stream
from attention_core.model.pass_context import NO_HOOKS, Hooks
from attention_core.model.transformer import Transformer
from attention_core.sampling import Sampling

MAX_BYTES = 256 * 1024**2


@dataclass(frozen=True)
class Trace:
    """A generation with the attention of each step. Tensors are float32, on the CPU.

    prompt: (P) ids. new: (N) ids. logprobs: (N), log-probabilities of the chosen tokens, as in
    `Step`.
    alternative_ids, alternative_logprobs: (N, A), the top tokens of each step, most likely first,
    before temperature and filters.
    weights: (L, H, S, S). Rows 0 to P - 1 come from the prefill, and each later row from its own
    decode step. Entries right of the diagonal are 0, because those keys didn't exist yet.
    value_norms: (L, H, S), ||v_j W_O|| of the cached values.
    """

    prompt: tuple[int, ...]
    new: tuple[int, ...]
    logprobs: tuple[float, ...]
    alternative_ids: Tensor
    alternative_logprobs: Tensor
    weights: Tensor
    value_norms: Tensor

    @property
    def n_steps(self) -> int:
        """N, the number of tokens chosen."""
        return len(self.new)

    @property
    def ids(self) -> tuple[int, ...]:
        """All P + N token ids."""
        return (*self.prompt, *self.new)

    def query(self, step: int) -> int:
        """The position of the query that chose the next token in step `step` (from 0).

        Raises: ValueError for a step that wasn't run.
        """
        if not 0 <= step < self.n_steps:
            raise ValueError(f"step must be 0 to {self.n_steps - 1}, got {step}")
        return len(self.prompt) + step - 1

    def row(self, step: int) -> Tensor:
        """The weights of the query that chose new token `step`: (L, H, P + step)."""
        query = self.query(step)
        return self.weights[:, :, query, : query + 1]


def trace(
    model: Transformer,
    token_ids: Sequence[int],
    *,
    max_new_tokens: int,
    sampling: Sampling | None = None,
    stop_ids: Collection[int] = (),
    n_alternatives: int = 5,
    max_bytes: int = MAX_BYTES,
    on_step: Callable[[int], None] | None = None,
    hooks: Hooks = NO_HOOKS,
    in_slots: Callable[[Iterator[Step]], Iterator[Step]] = iter,
) -> Trace:
    """Generate with a cache and record the attention of every step.

    in_slots: wraps the iterator of steps, and can wait before each one. on_step: called after each
    step with the number of tokens chosen so far; it can cancel the run by raising an error. hooks:
    passed to every forward pass.
    Raises: ValueError as in `stream`, for `n_alternatives` outside 1 .. V, and, before anything
    runs, if the weights would take more than `max_bytes`.
    """
    config = model.config
    if not 1 <= n_alternatives <= config.vocab_size:
        raise ValueError(f"n_alternatives must be 1 to {config.vocab_size}, got {n_alternatives}")
    n_run = len(token_ids) + max_new_tokens - 1
    needed = config.n_layers * config.n_heads * n_run * n_run * 4
    if needed > max_bytes:
        raise ValueError(
            f"the weights of {n_run} tokens in {config.n_layers} layers of {config.n_heads} heads "
            f"take {needed:,} bytes, over the limit of {max_bytes:,}; use fewer tokens"
        )
    steps: list[Step] = []
    last: tuple[AttentionRecord, ...] = ()
    weights = torch.zeros(config.n_layers, config.n_heads, max(n_run, 1), max(n_run, 1))
    generated = stream(
        model,
        token_ids,
        max_new_tokens=max_new_tokens,
        cache=model.new_cache(
            1, max(n_run, 1), keep_all=True
        ),  # keep all keys, so that each gets a weight
        sampling=sampling,
        stop_ids=stop_ids,
        hooks=hooks,
        record=True,
    )
    for step in in_slots(generated):
        end, first = step.n_keys, step.n_keys - step.n_new
        for layer, record in enumerate(step.records):
            weights[layer, :, first:end, :end] = record.weights[0].float().cpu()
        last = (
            step.records
        )  # keeping the records of all steps would take more memory than the weights
        steps.append(replace(step, records=()))
        if on_step is not None:
            on_step(len(steps))
    n_run = steps[-1].n_keys  # fewer than planned if the model ended the text
    with torch.inference_mode():
        norms = torch.cat(
            [
                value_norms(record.v, model.out_weight(layer)).float().cpu()
                for layer, record in enumerate(last)
            ]
        )
    top = torch.stack([torch.log_softmax(step.logits, -1) for step in steps]).topk(n_alternatives)
    return Trace(
        prompt=tuple(token_ids),
        new=tuple(step.token_id for step in steps),
        logprobs=tuple(step.logprob for step in steps),
        alternative_ids=top.indices,
        alternative_logprobs=top.values,
        weights=weights[:, :, :n_run, :n_run],
        value_norms=norms,
    )


def average_map(weights: Tensor, layer: int | None, head: int | None) -> Tensor:
    """The map of one head, or a mean: (L, H, T, S) -> (T, S).

    Without a head, it's the mean over the heads of the layer; without a layer, over all heads. Rows
    of a mean still sum to 1, but no single head has this pattern.
    Raises: ValueError for a head without a layer, or an index out of range.
    """
    n_layers, n_heads = weights.shape[:2]
    if layer is None:
        if head is not None:
            raise ValueError(f"head {head} needs a layer")
        return weights.mean(dim=(0, 1))
    if not 0 <= layer < n_layers or not 0 <= (head or 0) < n_heads:
        raise ValueError(
            f"layer {layer}, head {head} isn't in a model of {n_layers} layers with {n_heads} heads"
        )
    return weights[layer].mean(dim=0) if head is None else weights[layer, head]
