"""Generation whose decode steps all have one shape, so that they can be recorded or compiled.

A decode step of a small model is some three hundred kernels of a few microseconds, and Python takes
longer to ask for one than the GPU to run it. A CUDA graph records them once; a step is then a
single call. For that the step itself may not change: the cache returns all its rows and a mask
hides those that are not written yet, the position is a number on the device, and the next token is
chosen there too. One number goes to the CPU in each step, the token.

On a CPU the same step can be compiled (`attention_core.graphs.compiled`), which is the fastest way
to generate there. As it is, it is slower than `attention_core.stream`. Source: gpt-fast,
https://pytorch.org/blog/accelerating-generative-ai-2/ and
https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/.

Dimension letters: B batch, T new tokens, S all rows of the cache, C width, V vocabulary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence

import torch
from torch import Tensor

from attention_core.costs.formulas import forward_flops
from attention_core.costs.stopwatch import synchronize
from attention_core.generation import Step, check_room, timed_pass
from attention_core.graphs.cache import StaticCache
from attention_core.graphs.compiled import check_compiler, compiled
from attention_core.model.forward_pass import NO_HOOKS, Hooks, Pass
from attention_core.model.inputs import check_cache, prompt_ids
from attention_core.model.transformer import Transformer
from attention_core.positions.rotary import Rotation, rotary_angles
from attention_core.sampling import Sampling, distribution, sample

_WARM_UPS = 3  # steps before recording, in which libraries set themselves up


class Decoder:
    """A model with a cache of `max_length` tokens and one way to choose the next token.

    The tokens are those of `attention_core.stream` with a cache. With a temperature the draws on a
    GPU are of its own generator: as likely, but other ones for the same seed. In 16 bits two
    logits that are equal up to rounding may change places.
    The weights have to stay where and what they are: move or convert the model before. One
    generation at a time: a second one writes over what the first has stored.
    draw_on_cpu: draw each token on the CPU, with the numbers that `stream` draws for the same seed.
    The logits of every step, and not its token alone, then go there.
    compile_step: compile the decode step before the first generation, on a CPU.
    `attention_core.graphs.compiled` says how long that takes and what it costs.
    Raises: ValueError for a model without logits, for a `max_length` beyond its context, or for a
    step that is to be compiled on a GPU or without a compiler.
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
        check_room(model.config, 1, 1)
        if compile_step:
            check_compiler(next(model.parameters()).device)
        cache = model.new_cache(1, max_length, keep_all=True, cache_class=StaticCache)
        assert isinstance(cache, StaticCache)
        check_cache(model.config, cache)
        self.model, self.cache = model, cache
        self.sampling = sampling or Sampling()
        device = cache.position.device
        self.device = device
        self._columns = torch.arange(max_length, device=device)
        self._rotations = self._table()
        self._token = torch.zeros(1, 1, dtype=torch.long, device=device)
        self._logits = torch.zeros(model.config.vocab_size, device=device)
        # whether the largest logit of every step so far was a finite number
        self._finite = torch.ones((), dtype=torch.bool, device=device)
        self._draws_on_cpu = draw_on_cpu and not self.sampling.greedy
        self._generator = torch.Generator("cpu" if self._draws_on_cpu else device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._likeliest = torch.zeros((), dtype=torch.long, device=device)
        # no method of its own is kept here: the decoder would hold itself, and its GPU memory
        self._compiled_run: Callable[[], None] | None = None
        self._compile_step, self._is_prepared = compile_step, False

    def stream(
        self,
        token_ids: Sequence[int] | Tensor,
        *,
        max_new_tokens: int,
        stop_ids: Collection[int] = (),
        hooks: Hooks = NO_HOOKS,
    ) -> Iterator[Step]:
        """Yield one `Step` a new token, as `attention_core.stream` does; the first is the prefill.

        `seconds` of a decode step hold the choice of its token too. `before_layer` of the hooks is
        called in the prefill as usual, and once with layer 0 before each decode step; heads cannot
        be edited.
        Raises: ValueError, before anything runs, for a prompt that is no row of ids of the
        vocabulary, for tokens that have no room in the cache, or for a hook that edits heads; later
        where the largest logit is no finite number.
        """
        ids = self._checked(token_ids, max_new_tokens)
        if hooks.edit_heads is not None:
            raise ValueError("the heads of a recorded step cannot be edited")
        return self._steps(ids, max_new_tokens, frozenset(stop_ids), hooks)

    def generate(
        self,
        token_ids: Sequence[int] | Tensor,
        *,
        max_new_tokens: int,
        stop_ids: Collection[int] = (),
    ) -> list[int]:
        """The new token ids alone, with one number from the device a step (arguments of `stream`).

        Raises: ValueError as of `stream`.
        """
        ids = self._checked(token_ids, max_new_tokens)
        with torch.inference_mode():
            self._prefill(ids, NO_HOOKS)
            new = [int(self._token)]
            while len(new) < max_new_tokens and new[-1] not in stop_ids:
                self._advance()
                new.append(int(self._token))
            self._check_logits()
        return new

    def _checked(self, token_ids: Sequence[int] | Tensor, max_new_tokens: int) -> list[int]:
        """The ids of a prompt that has room in the cache, which nothing is done to."""
        ids = prompt_ids(token_ids, self.model.config.vocab_size)
        check_room(self.model.config, len(ids), max_new_tokens)
        needed = len(ids) + max_new_tokens - 1
        if needed > self.cache.max_length:
            raise ValueError(
                f"{len(ids)} prompt + {max_new_tokens} new tokens need {needed} positions, but the "
                f"cache holds {self.cache.max_length}"
            )
        return ids

    def _steps(
        self, ids: list[int], max_new_tokens: int, stop_ids: frozenset[int], hooks: Hooks
    ) -> Iterator[Step]:
        for number in range(max_new_tokens):
            # inference mode must not leak to the consumer between two steps
            with torch.inference_mode():
                if number:
                    if hooks.before_layer is not None:
                        hooks.before_layer(0)
                    seconds = self._timed_advance()
                else:
                    seconds = self._prefill(ids, hooks)
                token_id, logits = int(self._token), self._logits.cpu().clone()
                self._check_logits()
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
        """Run the prompt and choose the first token; the seconds of the model call."""
        self._prepare()
        self.cache.reset()
        self._finite.fill_(True)
        self._generator.manual_seed(self.sampling.seed)
        new = torch.tensor([ids], device=self.device)
        (logits,), seconds, _ = timed_pass(self.model, new, cache=self.cache, hooks=hooks)
        self._keep(logits)
        self._choose()
        self.cache.position.fill_(len(ids))
        return seconds

    def _timed_advance(self) -> float:
        synchronize(self.device)
        begin = time.perf_counter()
        self._advance()
        synchronize(self.device)
        return time.perf_counter() - begin

    def _advance(self) -> None:
        """One decode step: run the token, and put the next one in its place."""
        if self._graph is not None:
            self._graph.replay()
        else:
            self._step()
        self.cache.count_token()
        if self._draws_on_cpu:
            self._choose()

    def _prepare(self) -> None:
        """Before the first generation: record the step on a GPU, or compile it if that is asked."""
        if self._is_prepared:
            return
        if self.device.type == "cuda":
            self._graph = self._recorded()
        elif self._compile_step:
            self._compiled_run = compiled(self._plain_run)
        self._is_prepared = True

    def _recorded(self) -> torch.cuda.CUDAGraph:
        """The step as a graph, which is not run by this."""
        current, side = torch.cuda.current_stream(self.device), torch.cuda.Stream(self.device)
        side.wait_stream(current)
        with torch.cuda.stream(side):
            for _ in range(_WARM_UPS):
                self.cache.position.zero_()
                self._step()
            self.cache.position.zero_()
        current.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        if not self._draws_on_cpu:
            graph.register_generator_state(self._generator)
        # other threads go on meanwhile: what they ask of the GPU must not end the recording
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._step()
        return graph

    def _step(self) -> None:
        """The step itself; nothing in it waits for the device or depends on a number of the CPU."""
        run = self._compiled_run or self._plain_run
        run()
        if not self._draws_on_cpu:
            self._choose()

    def _plain_run(self) -> None:
        """Run the token at its position, and keep the logits of the next one."""
        model, position = self.model, self.cache.position
        rotation = None
        if self._rotations is not None:
            cos, sin = self._rotations
            rotation = cos.index_select(0, position), sin.index_select(0, position)
        entering = model.embed(self._token, position).entering  # (1, 1, C)
        self.cache.fixed = True
        try:
            # torch.compile cannot follow the default of `hooks`, hence they are named
            this_pass = Pass(self._seen(), rotation, self.cache, NO_HOOKS)
            hidden, _ = model.run_layers(entering, this_pass)
        finally:
            self.cache.fixed = False
        logits = model.logits(hidden)
        assert logits is not None  # checked at the start
        self._keep(logits[0, -1])
        position.add_(1)

    def _keep(self, logits: Tensor) -> None:
        """Keep logits (V,), and all of them that a greedy choice needs."""
        self._logits.copy_(logits)
        self._likeliest.copy_(logits.argmax())
        self._finite.logical_and_(logits.max().abs() < torch.inf)

    def _seen(self) -> Tensor:
        """Which rows of the cache the token at `position` sees: (1, S)."""
        seen = self._columns <= self.cache.position
        if self.model.config.window is not None:
            seen = seen & (self._columns > self.cache.position - self.model.config.window)
        return seen[None]

    def _choose(self) -> None:
        """Choose the next token as `attention_core.sample` does; the next step reads it there."""
        if self.sampling.greedy:
            self._token.copy_(self._likeliest)
            return
        if self._draws_on_cpu:
            self._token.fill_(sample(self._logits.cpu(), self.sampling, self._generator))
            return
        shares = distribution(self._logits, self.sampling)
        # what torch.multinomial does for one draw, without its look at the numbers from the CPU
        waits = torch.empty_like(shares).exponential_(1, generator=self._generator)
        self._token.copy_((shares / waits).argmax())

    def _check_logits(self) -> None:
        """Raise ValueError if the largest logit of any step so far was no finite number."""
        if not self._finite:
            raise ValueError("no token can be chosen: the largest of the logits is not finite")

    def _table(self) -> Rotation | None:
        """The rotation of every position, (S, T = 1, R) each; None for other positions.

        Each row is that of a text which ends there: a scaling may look at the length.
        """
        config = self.model.config
        if config.positions != "rotary":
            return None
        dtype = next(self.model.parameters()).dtype
        cos, sin = rotary_angles(
            self._columns[:, None], config.d_rotary, config.rope_theta, dtype, config.rope_scaling
        )
        return cos[:, 0], sin[:, 0]  # (S, 1, 1, R) -> (S, 1, R), which broadcasts over heads
