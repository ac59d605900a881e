"""A generation whose KV cache is recorded; one pass over its text, without a cache, checks it.

The model runs while the visitor's page runs, with a progress bar (`ui.widgets.progress`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from serving import compute, metrics, models, token_text
from serving.cache import cached
from serving.limits import MAX_INSIDE_PROMPT, MAX_INSIDE_TOKENS, MIN_INSIDE_TOKENS
from serving.prompts import check_choice, prepare
from ui.widgets.progress import Report, Reporter

if TYPE_CHECKING:
    from attention_core.model.config import TransformerConfig
    from pages.kv_cache.inside_the_cache.experiment.recording_cache import CacheStep
    from pretrained import Pretrained


@dataclass(frozen=True)
class CacheSettings:
    """The model, the prompt and the number of new tokens that a visitor has chosen."""

    model: str
    prompt: str
    n_new: int


@dataclass(frozen=True)
class CacheRun:
    """A finished generation and the buffers of its cache.

    key: what identifies this run in caches: the model, where its weights are, and the settings.
    keys, values: the whole buffers at the end, (L, H_kv, N, D), float32 and read-only. Rows never
    change once they are written, so after step t they held the rows up to that step's length.
    pieces: a short text for each of the P + N tokens. value_bytes: the bytes of one number of the
    model. ended: why there are fewer tokens than the visitor chose, or an empty text.
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
    ended: str

    @property
    def pretrained(self) -> Pretrained:
        """The model with the weights of this run; errors as of `models.loaded`."""
        name, source = self.key[:2]
        return models.loaded((str(name), str(source)))

    @property
    def n_prompt(self) -> int:
        """P, the number of prompt tokens."""
        return len(self.prompt)

    @property
    def n_steps(self) -> int:
        """How many tokens were chosen, one a step."""
        return len(self.steps)

    @property
    def run_ids(self) -> tuple[int, ...]:
        """The tokens that were run: all but the last, which was only chosen."""
        return (*self.prompt, *(step.token_id for step in self.steps[:-1]))

    @property
    def n_rows(self) -> int:
        """N, the rows of every buffer."""
        return int(self.keys.shape[2])

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers and of the logits of all steps."""
        logits = sum(step.logits.nbytes for step in self.steps)
        return self.keys.nbytes + self.values.nbytes + logits

    def length(self, step: int) -> int:
        """How many rows were stored after step `step` (from 0)."""
        return self.n_prompt + step


def _key(settings: CacheSettings, report: Report | None = None) -> tuple[object, ...]:
    return (*models.key(settings.model), settings)


@cached(key=_key)
def run(settings: CacheSettings, report: Report | None = None) -> CacheRun:
    """The run for these settings, kept for all visitors.

    `report` is called now and then with the number of finished steps, and may abandon the run by
    raising an error.
    Raises: OverLimit for a prompt that is too long or a number of tokens out of range, ValueError
    for a prompt without a token.
    """
    check_choice(settings.n_new, MIN_INSIDE_TOKENS, MAX_INSIDE_TOKENS)
    return _make(settings, Reporter(report))


def _make(settings: CacheSettings, reporter: Reporter) -> CacheRun:
    from attention_core import Hooks
    from pages.kv_cache.inside_the_cache.experiment.recording_cache import (
        RecordingCache,
        compare_with_one_pass,
        observe,
    )

    model = models.get(settings.model)
    prompt = prepare(
        model, settings.prompt, MAX_INSIDE_PROMPT, "a prompt on this page", settings.n_new
    )
    ids, n_new = prompt.ids, prompt.n_new
    cache = RecordingCache.for_model(model.core, len(ids) + n_new - 1, keep_all=True)
    generated, hooks = [], Hooks(before_layer=reporter.layer)
    begin = time.perf_counter()
    observed = observe(
        model.core,
        ids,
        cache,
        max_new_tokens=n_new,
        stop_ids=model.tokenizer.end_ids,
        hooks=hooks,
    )
    for step in metrics.counted(compute.steps(observed)):
        generated.append(step)
        reporter.unit()
    with compute.slot():
        steps = compare_with_one_pass(model.core, ids, generated, hooks=hooks)
    seconds = time.perf_counter() - begin
    ended = prompt.note if len(steps) == n_new else "The model ended its text here."
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
        ended=ended,
    )


def read_only(array: np.ndarray) -> np.ndarray:
    """The array, which all visitors share from now on."""
    array.setflags(write=False)
    return array
