"""A generation with a recorded KV cache, checked by one pass without a cache.

The model runs as part of the page run, with a progress bar (`ui.widgets.progress`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from serving import compute, metrics, models, token_text
from serving.cache import cached
from serving.limits import MAX_INSIDE_PROMPT, MAX_INSIDE_TOKENS, MIN_INSIDE_TOKENS
from serving.prompts import check_choice, prepare_prompt
from ui.widgets.progress import Report, Reporter

if TYPE_CHECKING:
    from attention_core.model.config import TransformerConfig
    from pages.kv_cache.inside_the_cache.experiment.recording_cache import CacheStep
    from pretrained import Pretrained


@dataclass(frozen=True)
class CacheSettings:
    """The visitor's model, prompt and number of new tokens."""

    model: str
    prompt: str
    n_new: int


@dataclass(frozen=True)
class CacheRun:
    """A finished generation and the buffers of its cache.

    key: cache key of this run: the model, the location of its weights, and the settings.
    keys, values: the whole buffers at the end, (L, H_kv, N, D), float32 and read-only. Rows never
    change once they're written, so after step t the buffers held the rows up to that length.
    pieces: the text of each prompt and new token. value_bytes: bytes per number in the model.
    end_reason: why there are fewer tokens than requested, or an empty string.
    """

    key: tuple[object, ...]
    settings: CacheSettings
    title: str
    config: TransformerConfig
    prompt: tuple[int, ...]
    steps: tuple[CacheStep, ...]
    keys: np.ndarray
    values: np.ndarray
    pieces: tuple[str, ...]
    value_bytes: int
    seconds: float
    end_reason: str

    @property
    def pretrained(self) -> Pretrained:
        """The model with the weights of this run; raises as `models.by_key` does."""
        name, source = self.key[:2]
        return models.by_key((str(name), str(source)))

    @property
    def n_prompt(self) -> int:
        """P, the number of prompt tokens."""
        return len(self.prompt)

    @property
    def n_steps(self) -> int:
        """Number of steps, each of which chose one token."""
        return len(self.steps)

    @property
    def run_ids(self) -> tuple[int, ...]:
        """IDs of the tokens that were run: all but the last, which was only chosen."""
        return (*self.prompt, *(step.token_id for step in self.steps[:-1]))

    @property
    def n_rows(self) -> int:
        """N, the number of rows in each buffer."""
        return int(self.keys.shape[2])

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers and of the logits of all steps."""
        logits = sum(step.logits.nbytes for step in self.steps)
        return self.keys.nbytes + self.values.nbytes + logits

    def length(self, step: int) -> int:
        """Number of rows stored after a step (from 0)."""
        return self.n_prompt + step


def _key(settings: CacheSettings, report: Report | None = None) -> tuple[object, ...]:
    return (*models.key(settings.model), settings)


@cached(key=_key)
def run(settings: CacheSettings, report: Report | None = None) -> CacheRun:
    """Run the generation; the result is cached for all visitors.

    report: called from time to time with the number of finished steps; it can abort the run by
    raising an error.
    Raises: OverLimit if the prompt is too long or the number of tokens is out of range; ValueError
    if the prompt contains no token.
    """
    check_choice(settings.n_new, MIN_INSIDE_TOKENS, MAX_INSIDE_TOKENS)
    return _generate(settings, Reporter(report))


def _generate(settings: CacheSettings, reporter: Reporter) -> CacheRun:
    from attention_core import Hooks
    from pages.kv_cache.inside_the_cache.experiment.recording_cache import (
        RecordingCache,
        compare_with_one_pass,
        record_steps,
    )

    model = models.get(settings.model)
    prompt = prepare_prompt(
        model, settings.prompt, MAX_INSIDE_PROMPT, "a prompt on this page", settings.n_new
    )
    ids, n_new = prompt.ids, prompt.n_new
    cache = RecordingCache.for_model(model.core, len(ids) + n_new - 1, keep_all=True)
    generated, hooks = [], Hooks(before_layer=reporter.layer)
    begin = time.perf_counter()
    observed = record_steps(
        model.core,
        ids,
        cache,
        max_new_tokens=n_new,
        stop_ids=model.tokenizer.end_ids,
        hooks=hooks,
    )
    for step in metrics.count_steps(compute.steps(observed)):
        generated.append(step)
        reporter.unit()
    with compute.slot():
        steps = compare_with_one_pass(model.core, ids, generated, hooks=hooks)
    seconds = time.perf_counter() - begin
    ended = prompt.note if len(steps) == n_new else "The model ended the text here."
    keys, values = (read_only(tensor.numpy()) for tensor in cache.contents())
    return CacheRun(
        key=_key(settings),
        settings=settings,
        title=model.spec.title,
        config=model.core.config,
        prompt=tuple(ids),
        steps=steps,
        keys=keys,
        values=values,
        value_bytes=model.dtype.itemsize,
        pieces=token_text.pieces(model.tokenizer, [*ids, *(step.token_id for step in steps)]),
        seconds=seconds,
        end_reason=ended,
    )


def read_only(array: np.ndarray) -> np.ndarray:
    """Make an array read-only, because visitors share it."""
    array.setflags(write=False)
    return array
