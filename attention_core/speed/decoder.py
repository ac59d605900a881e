"""Generation with decode steps of a fixed shape, recorded or compiled.

On a GPU, the recorded step also chooses the next token, so only its id goes to the CPU. On a CPU,
the compiled step is the fastest way to generate token by token. Without compiling it's slower than
`attention_core.stream`. The step itself is in `attention_core.speed.fixed_pass`.

Dimension letters: B batch, T new tokens, S all rows of the cache, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import torch
from torch import Tensor

from attention_core.costs.formulas import forward_flops
from attention_core.generation import Step
from attention_core.model.inputs import stop_set
from attention_core.model.pass_context import NO_HOOKS, Hooks, require_hooks
from attention_core.model.transformer import Transformer
from attention_core.sampling import Sampling, distribution, sample
from attention_core.speed.fixed_pass import FixedPass, validate_prompt


class Decoder(FixedPass):
    """A model with a cache of `max_length` tokens and a fixed sampling method.

    It generates the same tokens as `attention_core.stream` with a cache, with two exceptions. On a
    GPU with a temperature, the draws come from a different generator: the distribution is the same,
    but the same seed gives different tokens. In 16 bits, logits that are equal up to rounding may
    be ranked differently.

    Run one generation at a time. A second one overwrites the cache, and the next step of the first
    then raises a ValueError.

    draw_on_cpu: draw each token on the CPU, with the same random numbers as `stream` for this seed.
    The logits of every step are then copied there.

    Other arguments and errors as in `FixedPass`.
    """

    def __init__(
        self,
        model: Transformer,
        max_length: int,
        *,
        sampling: Sampling | None = None,
        draw_on_cpu: bool = False,
        compile_step: bool = False,
    ) -> None:
        super().__init__(model, max_length, compile_step=compile_step)
        self.sampling = sampling or Sampling()
        self._draws_on_cpu = draw_on_cpu and not self.sampling.greedy
        self._generator = torch.Generator("cpu" if self._draws_on_cpu else self.device)

    def stream(
        self,
        token_ids: Sequence[int] | Tensor,
        *,
        max_new_tokens: int,
        stop_ids: Collection[int] = (),
        hooks: Hooks = NO_HOOKS,
    ) -> Iterator[Step]:
        """Yield one `Step` per new token; arguments as in `attention_core.stream`.

        `seconds` of a decode step include choosing the token. The hook `before_layer` is called as
        usual during the prefill, and once with layer 0 before each decode step. Hooks that edit
        aren't supported.
        Raises: ValueError before anything runs for an invalid prompt, for tokens that don't fit the
        cache, or for a hook that edits. ValueError later if the largest logit isn't finite, or if
        something else used the decoder or its cache since the last step.
        """
        ids = self._validate_prompt(token_ids, max_new_tokens)
        require_hooks(hooks)
        if hooks.edit_heads is not None or hooks.edit is not None:
            raise ValueError("a recorded step can't be edited: use attention_core.stream instead")
        return self._steps(ids, max_new_tokens, stop_set(stop_ids), hooks)

    def generate(
        self,
        token_ids: Sequence[int] | Tensor,
        *,
        max_new_tokens: int,
        stop_ids: Collection[int] = (),
    ) -> list[int]:
        """Generate and return the new ids; only the ids are copied from the device.

        Arguments and errors as in `stream`.
        """
        ids, stops = self._validate_prompt(token_ids, max_new_tokens), stop_set(stop_ids)
        with torch.inference_mode():
            self._prefill(ids, NO_HOOKS)
            new = [int(self.token_ids)]
            while len(new) < max_new_tokens and new[-1] not in stops:
                self.advance()
                new.append(int(self.token_ids))
            self.check_logits()
        return new

    def _validate_prompt(self, token_ids: Sequence[int] | Tensor, max_new_tokens: int) -> list[int]:
        """The ids of a prompt that fits the cache."""
        room, holder = self.cache.max_length, "the cache has"
        return validate_prompt(self.model.config, token_ids, max_new_tokens, room, holder)

    def _steps(
        self, ids: list[int], max_new_tokens: int, stop_ids: frozenset[int], hooks: Hooks
    ) -> Iterator[Step]:
        state = self.cache.state
        for number in range(max_new_tokens):
            # inference mode must not stay on in the caller's code between steps
            with torch.inference_mode():
                if number:
                    self.cache.check_state(state)
                    if hooks.before_layer is not None:
                        hooks.before_layer(0)
                    seconds = self.timed_advance()
                else:
                    seconds = self._prefill(ids, hooks)
                token_id, logits = int(self.token_ids), self.logits[0].cpu().clone()
                self.check_logits()
                state = self.cache.state
            n_new, n_keys = 1 if number else len(ids), len(ids) + number
            yield Step(
                kind="decode" if number else "prefill",
                token_id=token_id,
                logprob=float(torch.log_softmax(logits, dim=-1)[token_id]),
                seconds=seconds,
                n_new=n_new,
                n_keys=n_keys,
                cache_length=n_keys,
                flops=forward_flops(
                    self.model.config, n_new, self.cache.max_length if number else n_keys
                ),
                logits=logits,
            )
            if token_id in stop_ids:
                return

    def _prefill(self, ids: list[int], hooks: Hooks) -> float:
        """Run the prompt and choose the first token; returns the model's seconds."""
        logits, seconds = self.start(ids, hooks)
        self._generator.manual_seed(self.sampling.seed)
        self._store_logits(logits[None])
        self._choose()
        return seconds

    def advance(self) -> None:
        """Run one decode step: process the current token and choose the next one."""
        super().advance()
        self.cache.commit_token()
        if self._draws_on_cpu:
            self._choose()

    def _before_recording(self, graph: torch.cuda.CUDAGraph) -> None:
        if not self._draws_on_cpu:
            graph.register_generator_state(self._generator)

    def _step(self) -> None:
        super()._step()
        self.cache.position.add_(1)
        if not self._draws_on_cpu:
            self._choose()

    def _choose(self) -> None:
        """Choose the next token as in `attention_core.sample`, for the next step."""
        if self.sampling.greedy:
            self.token_ids[0].copy_(self.argmax)
            return
        if self._draws_on_cpu:
            self.token_ids.fill_(sample(self.logits[0].cpu(), self.sampling, self._generator))
            return
        shares = distribution(self.logits[0], self.sampling)
        # same as torch.multinomial for one draw, but without its check on the CPU
        waits = torch.empty_like(shares).exponential_(1, generator=self._generator)
        self.token_ids.copy_((shares / waits).argmax())
