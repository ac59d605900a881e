"""Speculative decoding: a cheaper model drafts tokens, the model checks them.

A decode step takes as long as reading the weights. A pass over k + 1 tokens also reads them just
once, so if you can guess the next k tokens, checking them costs little more than one step. A
cheaper model guesses them, for example the same model in 8 bits. Every token is the model's own
choice, and the first wrong guess ends the round, so guesses never change the result.

Source: Leviathan et al. 2022, "Fast Inference from Transformers via Speculative Decoding",
https://arxiv.org/abs/2211.17192. The paper accepts guesses at random. Here, the draft uses the same
random numbers as the model, so the result equals that of `attention_core.stream`.

Dimension letters: T rows of a pass, V vocabulary.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import torch
from torch import Tensor

from attention_core.checks import NotFiniteError, require_int
from attention_core.generation import timed_pass
from attention_core.model.inputs import stop_set
from attention_core.model.transformer import Transformer
from attention_core.sampling import Sampling, sample
from attention_core.speed.fixed_pass import FixedPass, validate_prompt


@dataclass(frozen=True)
class Round:
    """The tokens from one pass: the first one after the prompt, or a checked draft.

    All tokens except the last were among the `n_drafted` guesses. The last one is the model's own
    choice, unless the text ends within the guesses.
    seconds: drafting, the pass and choosing together. logits: (n, V), the model's logits for each
    token, float32, on the CPU.
    """

    token_ids: tuple[int, ...]
    n_drafted: int
    seconds: float
    logits: Tensor = field(repr=False)


class SpeculativeDecoder:
    """A model with a draft model that guesses `n_drafted` tokens before each pass.

    It generates the same tokens as `attention_core.stream` with a cache and the same `sampling`, on
    every device. A pass over several rows may change the last bits of a logit, so logits that are
    equal up to rounding may be ranked differently.

    Texts can have `max_length` tokens. Near the end of the context, where a full draft doesn't fit,
    tokens are generated one by one. Run one generation at a time: after a second one starts, the
    next round of the first raises a ValueError. Don't move or change the weights of either model.

    compile_step: compile the draft's step and the model's pass before the first generation, on a
    CPU. `attention_core.speed.compilation` describes how long that takes.
    Raises: ValueError for models without logits or with different vocabularies, for a `max_length`
    beyond either context, or as in `FixedPass` if compiling isn't possible.
    """

    def __init__(
        self,
        model: Transformer,
        draft: Transformer,
        max_length: int,
        *,
        n_drafted: int = 4,
        sampling: Sampling | None = None,
        compile_step: bool = False,
    ) -> None:
        require_int("max_length", max_length)
        require_int("n_drafted", n_drafted)
        vocabularies = model.config.vocab_size, draft.config.vocab_size
        if vocabularies[0] != vocabularies[1]:
            raise ValueError(
                f"the draft needs the model's vocabulary: {vocabularies[0]} tokens in the model, "
                f"{vocabularies[1]} in the draft"
            )
        self.max_length, self.n_drafted = max_length, n_drafted
        self.sampling = sampling or Sampling()
        # After the last token there's space for guesses that turn out not to be needed.
        context = min(model.config.context_length, draft.config.context_length)
        room = max(max_length, min(context, max_length + n_drafted))
        rows = min(n_drafted + 1, room)
        self._check = FixedPass(model, room, n_rows=rows, compile_step=compile_step)
        self._draft = FixedPass(draft, room, compile_step=compile_step)

    def rounds(
        self,
        token_ids: Sequence[int] | Tensor,
        *,
        max_new_tokens: int,
        stop_ids: Collection[int] = (),
    ) -> Iterator[Round]:
        """Yield one `Round` per pass; the first runs the prompt and has one token.

        Raises: ValueError before anything runs for an invalid prompt or tokens that don't fit.
        ValueError later if the largest logit isn't finite, or if another generation used this
        decoder since the last round.
        """
        config, holder = self._check.model.config, "the limit is"
        ids = validate_prompt(config, token_ids, max_new_tokens, self.max_length, holder)
        return self._rounds(ids, max_new_tokens, stop_set(stop_ids))

    def generate(
        self,
        token_ids: Sequence[int] | Tensor,
        *,
        max_new_tokens: int,
        stop_ids: Collection[int] = (),
    ) -> list[int]:
        """Generate and return the new token ids; arguments and errors as in `rounds`."""
        rounds = self.rounds(token_ids, max_new_tokens=max_new_tokens, stop_ids=stop_ids)
        return [token_id for round_ in rounds for token_id in round_.token_ids]

    def _rounds(
        self, text: list[int], max_new_tokens: int, stop_ids: frozenset[int]
    ) -> Iterator[Round]:
        generator = torch.Generator().manual_seed(self.sampling.seed)
        end = len(text) + max_new_tokens
        with torch.inference_mode():  # not around a yield, as in `stream`
            settled = self._first_round(text, generator)
        while True:
            new = _truncate_at_stop(settled.token_ids[: end - len(text)], stop_ids)
            text = [*text, *new]
            state = self._check.cache.state
            yield Round(new, settled.n_drafted, settled.seconds, settled.logits[: len(new)])
            if len(text) == end or new[-1] in stop_ids:
                return
            self._check.cache.check_state(state)
            with torch.inference_mode():
                settled = self._next_round(text, generator)

    def _first_round(self, text: list[int], generator: torch.Generator) -> Round:
        """Run the prompt in both models; the model chooses the first new token."""
        self._draft.prepare()
        self._check.prepare()
        begin = time.perf_counter()
        with suppress(NotFiniteError):  # then its guesses are bad, but the model still decides
            self._draft.start(text)
        logits, _ = self._check.start(text)
        token_id = sample(logits, self.sampling, generator)
        return Round((token_id,), 0, time.perf_counter() - begin, logits[None])

    def _next_round(self, text: list[int], generator: torch.Generator) -> Round:
        """Draft and check the continuation of a text whose last token hasn't been run yet."""
        begin, cache = time.perf_counter(), self._check.cache
        cache.rewind_to(len(text) - 1)
        guesses: list[int] = []
        if len(text) - 1 + self._check.n_rows <= cache.max_length:
            guesses = self._draft_tokens(text, generator)
            logits = self._target_logits([text[-1], *guesses])
        else:  # at the end of the context
            last = torch.tensor([text[-1:]], device=self._check.device)
            logits, _, _ = timed_pass(self._check.model, last, cache=cache)
        chosen = self._accept(logits, guesses, generator)
        # the draft has run all of its guesses except the last; wrong ones get overwritten
        self._draft.cache.rewind_to(min(len(text) - 1 + len(chosen), self._draft.cache.length))
        seconds = time.perf_counter() - begin
        return Round(chosen, len(guesses), seconds, logits[: len(chosen)].clone())

    def _draft_tokens(self, text: list[int], generator: torch.Generator) -> list[int]:
        """The draft's predictions after a text, drawn with the model's random numbers."""
        draft, guesses = self._draft, list[int]()
        numbers = generator.clone_state()
        behind = text[draft.cache.length :]  # not run by the draft yet
        while len(guesses) < self._check.n_rows - 1:
            draft.token_ids.fill_(behind.pop(0) if behind else guesses[-1])
            draft.advance()
            draft.cache.rewind_to(draft.cache.length + 1)
            if not behind:
                guesses.append(self._sample(draft.logits[0], numbers))
        return guesses

    def _target_logits(self, token_ids: list[int]) -> Tensor:
        """The model's logits after each of these tokens: (T, V), float32, on the CPU."""
        self._check.token_ids.copy_(torch.tensor([token_ids]))
        self._check.advance()
        return self._check.logits.cpu()  # rows after a wrong guess are ignored

    def _accept(
        self, logits: Tensor, guesses: list[int], generator: torch.Generator
    ) -> tuple[int, ...]:
        """The model's choices, row by row, up to the first one that differs from the guess."""
        chosen = list[int]()
        for row in logits:
            chosen.append(sample(row, self.sampling, generator))
            if chosen != guesses[: len(chosen)]:
                break
        return tuple(chosen)

    def _sample(self, logits: Tensor, generator: torch.Generator) -> int:
        logits = logits.cpu()
        if not logits.max().isfinite():
            return int(logits.argmax())  # any guess works, because the model decides
        return sample(logits, self.sampling, generator)


def _truncate_at_stop(token_ids: tuple[int, ...], stop_ids: frozenset[int]) -> tuple[int, ...]:
    """The tokens up to and including the first stop id."""
    ends = (n for n, token_id in enumerate(token_ids, 1) if token_id in stop_ids)
    return token_ids[: next(ends, len(token_ids))]
