"""A forward pass of fixed shape and fixed memory, to be recorded or compiled.

A decode step of a small model runs about three hundred kernels of a few microseconds each, and
Python takes longer to launch one than the GPU takes to run it. A CUDA graph records them once, so a
step is a single call. This works only if nothing in the graph depends on the number of tokens so
far: the cache returns all its rows, a mask hides those that aren't written yet, and positions are
tensors on the device. On a CPU the same pass can be compiled (`attention_core.speed.compilation`).
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
from attention_core.generation import check_capacity, timed_pass
from attention_core.model.config import TransformerConfig
from attention_core.model.inputs import check_cache, prompt_ids
from attention_core.model.pass_context import NO_HOOKS, Hooks, PassContext
from attention_core.model.transformer import Transformer
from attention_core.positions.rotary import Rotation, rotary_angles
from attention_core.speed.compilation import check_compiler, compile_once
from attention_core.speed.static_cache import StaticCache

_WARM_UPS = 3  # passes before recording, to initialize libraries


def validate_prompt(
    config: TransformerConfig,
    token_ids: Sequence[int] | Tensor,
    max_new_tokens: int,
    capacity: int,
    capacity_owner: str,
) -> list[int]:
    """The ids of a prompt that fits, with its new tokens, into `capacity` positions.

    capacity_owner: the start of the error message after "but", such as "the cache has".
    Raises: ValueError for an invalid prompt, or if it doesn't fit.
    """
    ids = prompt_ids(token_ids, config.vocab_size)
    check_capacity(config, len(ids), max_new_tokens)
    needed = len(ids) + max_new_tokens - 1
    if needed > capacity:
        raise ValueError(
            f"{len(ids)} prompt + {max_new_tokens} new tokens need {needed} positions, but "
            f"{capacity_owner} {capacity}"
        )
    return ids


class FixedPass:
    """A model with a cache of `max_length` tokens and a pass over `n_rows` tokens.

    `token_ids` (1, T) is the input of the next pass. The results are `logits` (T, V), `argmax`
    (T), the index of each row's largest logit, and `finite`, whether the largest logit of every row
    since `start` was finite.

    Don't move or change the weights after creating it. Call it in inference mode, because the
    tensors it keeps would otherwise track gradients.

    compile_step: compile the pass before its first run, on a CPU.
    `attention_core.speed.compilation` describes how long that takes.
    Raises: ValueError for a model without logits, for a `max_length` beyond its context or below
    `n_rows`, or if compiling is requested on a GPU or without a compiler.
    """

    def __init__(
        self, model: Transformer, max_length: int, *, n_rows: int = 1, compile_step: bool = False
    ) -> None:
        check_capacity(model.config, 1, 1)
        if compile_step:
            check_compiler(next(model.parameters()).device)
        cache = model.new_cache(1, max_length, keep_all=True, cache_class=StaticCache)
        assert isinstance(cache, StaticCache)
        check_cache(model.config, cache)
        cache.set_step_width(n_rows)
        self.model, self.cache = model, cache
        self.device = device = cache.position.device
        self.token_ids = torch.zeros(1, n_rows, dtype=torch.long, device=device)
        self.logits = torch.zeros(n_rows, model.config.vocab_size, device=device)
        self.argmax = torch.zeros(n_rows, dtype=torch.long, device=device)
        self.finite = torch.ones((), dtype=torch.bool, device=device)
        self._columns = torch.arange(max_length, device=device)
        self._rotations = self._rotation_table()
        self._graph: torch.cuda.CUDAGraph | None = None
        # not a bound method: the object would reference itself, and keep its GPU memory alive
        self._compiled_run: Callable[[], None] | None = None
        self._compile_step, self._is_prepared = compile_step, False

    @property
    def n_rows(self) -> int:
        """T, the number of tokens per pass."""
        return self.token_ids.shape[1]

    def start(self, ids: Sequence[int], hooks: Hooks = NO_HOOKS) -> tuple[Tensor, float]:
        """Reset, and run a prompt: returns its last logits (V,) and the model's seconds."""
        self.prepare()
        self.cache.reset()
        self.cache.rewind_to(0)  # position of the next pass in case this one fails
        for buffer in (*self.cache.buffers[0], *self.cache.buffers[1]):
            buffer.zero_()  # hidden rows have weight 0, but 0 times NaN would be NaN
        self.finite.fill_(True)
        new = torch.tensor([list(ids)], device=self.device)
        (logits,), seconds, _ = timed_pass(self.model, new, cache=self.cache, hooks=hooks)
        self.cache.rewind_to(len(ids))
        return logits, seconds

    def timed_advance(self) -> float:
        """Run the next pass and return its seconds, with the device synchronized."""
        synchronize(self.device)
        begin = time.perf_counter()
        self.advance()
        synchronize(self.device)
        return time.perf_counter() - begin

    def advance(self) -> None:
        """Run the next pass. The caller then has to advance the cache (`StaticCache`)."""
        if self._graph is not None:
            self._graph.replay()
        else:
            self._step()

    def check_logits(self) -> None:
        """Raise ValueError if the largest logit of any row so far wasn't finite."""
        if not self.finite:
            raise ValueError("can't choose a token: the largest logit isn't finite")

    def prepare(self) -> None:
        """Record the pass on a GPU, or compile it if requested, before the first run."""
        if self._is_prepared:
            return
        if self.device.type == "cuda":
            self._graph = self._record_graph()
        elif self._compile_step:
            self._compiled_run = compile_once(self._run_eager, one_row=self.n_rows == 1)
        self._is_prepared = True

    def _record_graph(self) -> torch.cuda.CUDAGraph:
        """Capture the pass as a CUDA graph, without running it."""
        current, side = torch.cuda.current_stream(self.device), torch.cuda.Stream(self.device)
        side.wait_stream(current)
        with torch.cuda.stream(side):
            for _ in range(_WARM_UPS):
                self.cache.rewind_to(0)
                self._step()
            self.cache.rewind_to(0)
        current.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self._before_recording(graph)
        # other threads keep using the GPU, which must not abort the capture
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._step()
        return graph

    def _before_recording(self, graph: torch.cuda.CUDAGraph) -> None:
        """Register anything else that the graph needs."""

    def _step(self) -> None:
        """The pass itself; it never waits for the device or depends on values on the CPU."""
        run = self._compiled_run or self._run_eager
        run()

    def _run_eager(self) -> None:
        """Run the tokens at their positions, and store the results."""
        model, position = self.model, self.cache.position
        rotation = None
        if self._rotations is not None:
            cos, sin = self._rotations
            rotation = cos.index_select(0, position), sin.index_select(0, position)
        entering = model.embed(self.token_ids, position).layer_input  # (1, T, C)
        self.cache.fixed = True
        try:
            # torch.compile can't trace the default of `hooks`, so it's passed explicitly
            this_pass = PassContext(self._visible_mask(), rotation, self.cache, NO_HOOKS)
            hidden, _ = model.run_layers(entering, this_pass)
        finally:
            self.cache.fixed = False
        logits = model.logits(hidden)
        assert logits is not None  # checked in the constructor
        self._store_logits(logits[0])

    def _store_logits(self, logits: Tensor) -> None:
        """Store logits (T, V) and what greedy decoding needs."""
        self.logits.copy_(logits)
        self.argmax.copy_(logits.argmax(dim=-1))
        self.finite.logical_and_((logits.amax(dim=-1).abs() < torch.inf).all())

    def _visible_mask(self) -> Tensor:
        """Which rows of the cache each token sees: (T, S)."""
        own = self.cache.position[:, None]
        visible = self._columns <= own
        if self.model.config.window is not None:
            visible = visible & (self._columns > own - self.model.config.window)
        return visible

    def _rotation_table(self) -> Rotation | None:
        """The rotation of every position, (S, R) each; None if the model's positions aren't rotary.

        Each row is computed for a text that ends there, because a scaling may depend on the length.
        """
        config = self.model.config
        if config.positions != "rotary":
            return None
        dtype = next(self.model.parameters()).dtype
        cos, sin = rotary_angles(
            self._columns[:, None], config.d_rotary, config.rope_theta, dtype, config.rope_scaling
        )
        return cos[:, 0, 0], sin[:, 0, 0]  # (S, 1, 1, R) -> (S, R)
