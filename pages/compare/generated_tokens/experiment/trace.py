"""Generation with its attention: what every step of a run with a KV cache looked at.

A step runs one token, the newest, as the only query; its attention decides what the model knows
when it chooses the next token. Nothing is computed a second time: the weights kept here are those
of the steps themselves.

Dimension letters: L layers, H query heads, P prompt tokens, N new tokens, S = P + N - 1 tokens that
were run (the last new one is chosen, but never run).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attention_core.analysis.contributions import value_norms
from attention_core.attend import AttentionRecord
from attention_core.generation import Step, stream
from attention_core.model.forward_pass import NO_HOOKS, Hooks
from attention_core.model.transformer import Transformer
from attention_core.sampling import Sampling

MAX_BYTES = 256 * 1024**2


@dataclass(frozen=True)
class Trace:
    """A generation and the attention of each of its steps. Tensors are float32, on the CPU.

    prompt: (P) ids. new: (N) ids. logprobs: (N), of the chosen tokens, as in `Step`.
    alternative_ids, alternative_logprobs: (N, A), the likeliest tokens of each step, likeliest
    first, by the model's own probabilities, before temperature and filters.
    weights: (L, H, S, S). Row i is what the pass that ran token i computed: rows 0 to P - 1 are the
    prefill's, each later row a decode step's own; right of the diagonal is 0, for no such key was
    there. value_norms: (L, H, S), ||v_j W_O|| of the cached values.
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
        """All P + N ids."""
        return (*self.prompt, *self.new)

    def query(self, step: int) -> int:
        """The position of the token that step `step` (from 0) ran last: it chose the next one.

        Raises: ValueError for a step that was not run.
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
    paced: Callable[[Iterator[Step]], Iterator[Step]] = iter,
) -> Trace:
    """Generate with a cache and keep the attention of every step.

    The steps go through `paced`, which may wait before it takes one.
    `on_step` is called with the number of tokens chosen so far after each step and may
    abandon the run by raising; the `hooks` go to every forward pass.
    Raises: ValueError as `stream` does, for `n_alternatives` outside 1 .. V, and, before anything
    runs, when the weights would take more than `max_bytes`.
    """
    config = model.config
    if not 1 <= n_alternatives <= config.vocab_size:
        raise ValueError(f"n_alternatives must be 1 to {config.vocab_size}, got {n_alternatives}")
    n_run = len(token_ids) + max_new_tokens - 1
    needed = config.n_layers * config.n_heads * n_run * n_run * 4
    if needed > max_bytes:
        raise ValueError(
            f"the weights of {n_run} tokens in {config.n_layers} layers of {config.n_heads} heads "
            f"take {needed:,} bytes, over the limit of {max_bytes:,}: fewer tokens, please"
        )
    steps: list[Step] = []
    last: tuple[AttentionRecord, ...] = ()
    weights = torch.zeros(config.n_layers, config.n_heads, max(n_run, 1), max(n_run, 1))
    generated = stream(
        model,
        token_ids,
        max_new_tokens=max_new_tokens,
        cache=model.new_cache(1, max(n_run, 1), keep_all=True),  # a weight for every key
        sampling=sampling,
        stop_ids=stop_ids,
        hooks=hooks,
        record=True,
    )
    for step in paced(generated):
        end, first = step.n_keys, step.n_keys - step.n_new
        for layer, record in enumerate(step.records):
            weights[layer, :, first:end, :end] = record.weights[0].float().cpu()
        last = step.records  # the caches of all steps together would outweigh the weights
        steps.append(replace(step, records=()))
        if on_step is not None:
            on_step(len(steps))
    n_run = steps[-1].n_keys  # fewer than planned where the model ended its text
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


def averaged(weights: Tensor, layer: int | None, head: int | None) -> Tensor:
    """The map of one head, or a mean: (L, H, T, S) -> (T, S).

    Without a head, the mean over the heads of the layer; without a layer too, over all heads. The
    rows of a mean still sum to 1, but no head looks like it.
    Raises: ValueError for a head without a layer, or numbers out of range.
    """
    n_layers, n_heads = weights.shape[:2]
    if layer is None:
        if head is not None:
            raise ValueError(f"head {head} of which layer?")
        return weights.mean(dim=(0, 1))
    if not 0 <= layer < n_layers or not 0 <= (head or 0) < n_heads:
        raise ValueError(
            f"there are {n_layers} layers of {n_heads} heads, not layer {layer}, head {head}"
        )
    return weights[layer].mean(dim=0) if head is None else weights[layer, head]
