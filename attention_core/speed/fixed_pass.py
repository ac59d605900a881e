"""A forward pass of one shape that stays at its addresses, to be recorded or compiled.

A decode step of a small model is some three hundred kernels of a few microseconds, and Python takes
longer to ask for one than the GPU to run it. A CUDA graph records them once; a step is then a
single call. For that nothing in it may depend on how many tokens there are by now: the cache
returns all its rows and a mask hides those that are not written yet, and the positions are numbers
on the device. On a CPU the same pass can be compiled (`attention_core.speed.compiled`).
Source: gpt-fast, https://pytorch.org/blog/accelerating-generative-ai-2/ and
https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/.

Dimension letters: B batch, T rows of the pass, S all rows of the cache, C width, V vocabulary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from attention_core.costs.stopwatch import synchronize
from attention_core.generation import check_room, timed_pass
from attention_core.model.config import TransformerConfig
from attention_core.model.forward_pass import NO_HOOKS, Hooks, Pass
from attention_core.model.inputs import check_cache, prompt_ids
from attention_core.model.transformer import Transformer
from attention_core.positions.rotary import Rotation, rotary_angles
from attention_core.speed.compiled import check_compiler, compiled
from attention_core.speed.static_cache import StaticCache

_WARM_UPS = 3  # passes before recording, in which libraries set themselves up


def prompt_in_room(
    config: TransformerConfig,
    token_ids: Sequence[int] | Tensor,
    max_new_tokens: int,
    room: int,
    holder: str,
) -> list[int]:
    """The ids of a prompt for whose text there is room: so many positions, in what `holder` names.

    Raises: ValueError for a prompt that is no row of ids of the vocabulary, or without room.
    """
    ids = prompt_ids(token_ids, config.vocab_size)
    check_room(config, len(ids), max_new_tokens)
    needed = len(ids) + max_new_tokens - 1
    if needed > room:
        raise ValueError(
            f"{len(ids)} prompt + {max_new_tokens} new tokens need {needed} positions, but "
            f"{holder} {room}"
        )
    return ids


class FixedPass:
    """A model with a cache of `max_length` tokens, and a pass of `n_rows` new ones at once.

    `token_ids` (1, T) are what the next pass runs. Afterwards `logits` (T, V) and `likeliest` (T),
    the number of each row's largest logit, are there; `finite` says whether the largest of every
    row since `start` was a finite number.
    The weights have to stay where and what they are: move or convert the model before. Call it in
    inference mode: what it keeps would else remember how it was computed.
    compile_step: compile the pass before it runs first, on a CPU.
    `attention_core.speed.compiled` says how long that takes and what it costs.
    Raises: ValueError for a model without logits, for a `max_length` beyond its context or below
    `n_rows`, or for a pass that is to be compiled on a GPU or without a compiler.
    """

    def __init__(
        self, model: Transformer, max_length: int, *, n_rows: int = 1, compile_step: bool = False
    ) -> None:
        check_room(model.config, 1, 1)
        if compile_step:
            check_compiler(next(model.parameters()).device)
        cache = model.new_cache(1, max_length, keep_all=True, cache_class=StaticCache)
        assert isinstance(cache, StaticCache)
        check_cache(model.config, cache)
        cache.write_at_once(n_rows)
        self.model, self.cache = model, cache
        self.device = device = cache.position.device
        self.token_ids = torch.zeros(1, n_rows, dtype=torch.long, device=device)
        self.logits = torch.zeros(n_rows, model.config.vocab_size, device=device)
        self.likeliest = torch.zeros(n_rows, dtype=torch.long, device=device)
        self.finite = torch.ones((), dtype=torch.bool, device=device)
        self._columns = torch.arange(max_length, device=device)
        self._rotations = self._table()
        self._graph: torch.cuda.CUDAGraph | None = None
        # no method of its own is kept here: the pass would hold itself, and its GPU memory
        self._compiled_run: Callable[[], None] | None = None
        self._compile_step, self._is_prepared = compile_step, False

    @property
    def n_rows(self) -> int:
        """T, the tokens of a pass."""
        return self.token_ids.shape[1]

    def start(self, ids: Sequence[int], hooks: Hooks = NO_HOOKS) -> tuple[Tensor, float]:
        """Forget everything and run a prompt: its last logits (V,) and the model call's seconds."""
        self.prepare()
        self.cache.reset()
        self.cache.stand_at(0)  # where the next pass writes if this one fails
        for buffer in (*self.cache.buffers[0], *self.cache.buffers[1]):
            buffer.zero_()  # a hidden row has weight 0, and 0 times NaN would be NaN
        self.finite.fill_(True)
        new = torch.tensor([list(ids)], device=self.device)
        (logits,), seconds, _ = timed_pass(self.model, new, cache=self.cache, hooks=hooks)
        self.cache.stand_at(len(ids))
        return logits, seconds

    def timed_advance(self) -> float:
        """Run the next pass: its seconds, the device synchronised."""
        synchronize(self.device)
        begin = time.perf_counter()
        self.advance()
        synchronize(self.device)
        return time.perf_counter() - begin

    def advance(self) -> None:
        """Run the next pass. Whoever calls this moves the cache on (`StaticCache`)."""
        if self._graph is not None:
            self._graph.replay()
        else:
            self._step()

    def check_logits(self) -> None:
        """Raise ValueError if the largest logit of any row so far was no finite number."""
        if not self.finite:
            raise ValueError("no token can be chosen: the largest of the logits is not finite")

    def prepare(self) -> None:
        """Before the first pass: record it on a GPU, or compile it if that is asked."""
        if self._is_prepared:
            return
        if self.device.type == "cuda":
            self._graph = self._recorded()
        elif self._compile_step:
            self._compiled_run = compiled(self._plain_run, one_row=self.n_rows == 1)
        self._is_prepared = True

    def _recorded(self) -> torch.cuda.CUDAGraph:
        """The pass as a graph, which is not run by this."""
        current, side = torch.cuda.current_stream(self.device), torch.cuda.Stream(self.device)
        side.wait_stream(current)
        with torch.cuda.stream(side):
            for _ in range(_WARM_UPS):
                self.cache.stand_at(0)
                self._step()
            self.cache.stand_at(0)
        current.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self._before_recording(graph)
        # other threads go on meanwhile: what they ask of the GPU must not end the recording
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._step()
        return graph

    def _before_recording(self, graph: torch.cuda.CUDAGraph) -> None:
        """What else a graph has to know of."""

    def _step(self) -> None:
        """The pass itself; nothing in it waits for the device or depends on a number of the CPU."""
        run = self._compiled_run or self._plain_run
        run()

    def _plain_run(self) -> None:
        """Run the tokens at their positions, and keep what comes out."""
        model, position = self.model, self.cache.position
        rotation = None
        if self._rotations is not None:
            cos, sin = self._rotations
            rotation = cos.index_select(0, position), sin.index_select(0, position)
        entering = model.embed(self.token_ids, position).entering  # (1, T, C)
        self.cache.fixed = True
        try:
            # torch.compile cannot follow the default of `hooks`, hence they are named
            this_pass = Pass(self._seen(), rotation, self.cache, NO_HOOKS)
            hidden, _ = model.run_layers(entering, this_pass)
        finally:
            self.cache.fixed = False
        logits = model.logits(hidden)
        assert logits is not None  # checked at the start
        self._keep(logits[0])

    def _keep(self, logits: Tensor) -> None:
        """Keep logits (T, V), and all of them that a greedy choice needs."""
        self.logits.copy_(logits)
        self.likeliest.copy_(logits.argmax(dim=-1))
        self.finite.logical_and_((logits.amax(dim=-1).abs() < torch.inf).all())

    def _seen(self) -> Tensor:
        """Which rows of the cache each of the tokens sees: (T, S)."""
        own = self.cache.position[:, None]
        seen = self._columns <= own
        if self.model.config.window is not None:
            seen = seen & (self._columns > own - self.model.config.window)
        return seen

    def _table(self) -> Rotation | None:
        """The rotation of every position, (S, R) each; None for other positions.

        Each row is that of a text which ends there: a scaling may look at the length.
        """
        config = self.model.config
        if config.positions != "rotary":
            return None
        dtype = next(self.model.parameters()).dtype
        cos, sin = rotary_angles(
            self._columns[:, None], config.d_rotary, config.rope_theta, dtype, config.rope_scaling
        )
        return cos[:, 0, 0], sin[:, 0, 0]  # (S, 1, 1, R) -> (S, R)
