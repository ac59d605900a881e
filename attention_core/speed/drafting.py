"""Generation whose tokens a cheaper model drafts, and the model itself checks several at once.

A decode step takes the time to read the weights. A pass over k + 1 tokens reads them once too, so
whoever knows the next k tokens has k + 1 for the price of little more than one. A cheaper model
guesses them, the same one in 8 bits say. The model's own choice stands in every place, and the
first guess that differs from it ends the round: what comes out is what the model alone writes,
with any guesses. Source: Leviathan et al. 2022, "Fast Inference from Transformers via Speculative
Decoding", https://arxiv.org/abs/2211.17192. Its rule accepts by chance; here the draft draws with
the same random numbers as the model, which keeps every draw of `attention_core.stream`.

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
from attention_core.speed.fixed_pass import FixedPass, prompt_in_room


@dataclass(frozen=True)
class Round:
    """The tokens that one pass of the model has settled: the prompt's first, or a draft's.

    The others were guessed right, of `n_drafted`, but for the last of `token_ids`, which is the
    model's own unless the text ends in the middle of the guesses.
    `seconds` hold the guesses, the pass and the choices. `logits` (n, V) are the model's for each
    token, float32, on the CPU.
    """

    token_ids: tuple[int, ...]
    n_drafted: int
    seconds: float
    logits: Tensor = field(repr=False)


class DraftedDecoder:
    """A model, and a draft of it that guesses `n_drafted` tokens before each of its passes.

    The tokens are those of `attention_core.stream` with a cache and the same `sampling`, on every
    device. In a pass over several rows the last bits of a logit may differ, so that two that are
    equal up to rounding may change places.
    There is room for `max_length` tokens; where the context has none for a whole draft, tokens are
    run one by one. One generation at a time: after a second one has begun, the next round of the
    first raises a ValueError. The weights of both have to stay where and what they are.
    compile_step: compile the draft's step and the model's pass before the first generation, on a
    CPU. `attention_core.speed.compiled` says how long that takes and what it costs.
    Raises: ValueError for models without logits or of different vocabularies, for a `max_length`
    beyond the context of one, or for what `FixedPass` cannot compile.
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
                f"a draft must have the model's tokens: {vocabularies[0]} of the model, "
                f"{vocabularies[1]} of the draft"
            )
        self.max_length, self.n_drafted = max_length, n_drafted
        self.sampling = sampling or Sampling()
        # Behind the last token there is room to check guesses that are then not needed.
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
        """Yield one `Round` a pass of the model; the first is the prompt's, with one token.

        Raises: ValueError, before anything runs, for a prompt that is no row of ids of the
        vocabulary, or for tokens that have no room; later where the largest logit is not finite, or
        another generation has used this decoder since the last round.
        """
        config, holder = self._check.model.config, "there is room for"
        ids = prompt_in_room(config, token_ids, max_new_tokens, self.max_length, holder)
        return self._rounds(ids, max_new_tokens, stop_set(stop_ids))

    def generate(
        self,
        token_ids: Sequence[int] | Tensor,
        *,
        max_new_tokens: int,
        stop_ids: Collection[int] = (),
    ) -> list[int]:
        """The new token ids, by draining `rounds` (same arguments and errors)."""
        rounds = self.rounds(token_ids, max_new_tokens=max_new_tokens, stop_ids=stop_ids)
        return [token_id for round_ in rounds for token_id in round_.token_ids]

    def _rounds(
        self, text: list[int], max_new_tokens: int, stop_ids: frozenset[int]
    ) -> Iterator[Round]:
        generator = torch.Generator().manual_seed(self.sampling.seed)
        end = len(text) + max_new_tokens
        with torch.inference_mode():  # not around a yield: it would be on in the reader's code
            settled = self._first(text, generator)
        while True:
            new = _up_to_a_stop(settled.token_ids[: end - len(text)], stop_ids)
            text = [*text, *new]
            state = self._check.cache.state
            yield Round(new, settled.n_drafted, settled.seconds, settled.logits[: len(new)])
            if len(text) == end or new[-1] in stop_ids:
                return
            self._check.cache.check_state(state)
            with torch.inference_mode():
                settled = self._next(text, generator)

    def _first(self, text: list[int], generator: torch.Generator) -> Round:
        """Run the prompt in both models; the model chooses the first new token."""
        self._draft.prepare()
        self._check.prepare()
        begin = time.perf_counter()
        with suppress(NotFiniteError):  # then it guesses badly, and the model decides
            self._draft.start(text)
        logits, _ = self._check.start(text)
        token_id = sample(logits, self.sampling, generator)
        return Round((token_id,), 0, time.perf_counter() - begin, logits[None])

    def _next(self, text: list[int], generator: torch.Generator) -> Round:
        """Guess what follows a text whose last token the model has yet to run, and check it."""
        begin, cache = time.perf_counter(), self._check.cache
        cache.stand_at(len(text) - 1)
        guesses: list[int] = []
        if len(text) - 1 + self._check.n_rows <= cache.max_length:
            guesses = self._guesses(text, generator)
            logits = self._checked([text[-1], *guesses])
        else:  # at the end of the context
            last = torch.tensor([text[-1:]], device=self._check.device)
            logits, _, _ = timed_pass(self._check.model, last, cache=cache)
        chosen = self._chosen(logits, guesses, generator)
        # the draft has run what it guessed but for the last; what was wrong is written over
        self._draft.cache.stand_at(min(len(text) - 1 + len(chosen), self._draft.cache.length))
        seconds = time.perf_counter() - begin
        return Round(chosen, len(guesses), seconds, logits[: len(chosen)].clone())

    def _guesses(self, text: list[int], generator: torch.Generator) -> list[int]:
        """The tokens that the draft expects behind a text, drawn with the model's next numbers."""
        draft, guesses = self._draft, list[int]()
        numbers = generator.clone_state()
        behind = text[draft.cache.length :]  # what the draft has yet to run, the last at least
        while len(guesses) < self._check.n_rows - 1:
            draft.token_ids.fill_(behind.pop(0) if behind else guesses[-1])
            draft.advance()
            draft.cache.stand_at(draft.cache.length + 1)
            if not behind:
                guesses.append(self._choice(draft.logits[0], numbers))
        return guesses

    def _checked(self, token_ids: list[int]) -> Tensor:
        """The model's logits behind each of some tokens: (T, V), float32, on the CPU."""
        self._check.token_ids.copy_(torch.tensor([token_ids]))
        self._check.advance()
        return self._check.logits.cpu()  # what follows a wrong guess is not looked at

    def _chosen(
        self, logits: Tensor, guesses: list[int], generator: torch.Generator
    ) -> tuple[int, ...]:
        """The model's choices, row after row, up to the first that was not guessed."""
        chosen = list[int]()
        for row in logits:
            chosen.append(sample(row, self.sampling, generator))
            if chosen != guesses[: len(chosen)]:
                break
        return tuple(chosen)

    def _choice(self, logits: Tensor, generator: torch.Generator) -> int:
        logits = logits.cpu()
        if not logits.max().isfinite():
            return int(logits.argmax())  # any guess will do: the model decides
        return sample(logits, self.sampling, generator)


def _up_to_a_stop(token_ids: tuple[int, ...], stop_ids: frozenset[int]) -> tuple[int, ...]:
    """The tokens up to the first that ends a text, that one among them."""
    ends = (n for n, token_id in enumerate(token_ids, 1) if token_id in stop_ids)
    return token_ids[: next(ends, len(token_ids))]
