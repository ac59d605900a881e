"""A growing text whose steps run without a cache and with one.

The model runs as part of the page run, with a progress bar (`ui.widgets.progress`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from serving import compute, models, token_text
from serving.cache import cached
from serving.heads import HeadId
from serving.limits import (
    MAX_GROWN_BYTES,
    MAX_GROWN_PROMPT,
    MAX_GROWN_TOKENS,
    MIN_GROWN_TOKENS,
    OverLimit,
)
from serving.prompts import check_choice, prepare_prompt
from ui.text.formatting import format_number
from ui.widgets.progress import Report, Reporter
from ui.widgets.progress import run_with_progress as with_progress

if TYPE_CHECKING:
    from attention_core import TransformerConfig
    from pages.kv_cache.what_is_recomputed.experiment import GrownStep
    from pretrained import Pretrained


@dataclass(frozen=True)
class GrowthSettings:
    """The visitor's model, prompt and number of new tokens."""

    model: str
    prompt: str
    n_new: int


@dataclass(frozen=True)
class LargestChange:
    """The largest change of a matrix from one step to the next, and its head.

    value: largest absolute difference of the entries that both steps computed.
    """

    value: float
    layer: int
    head: int


@dataclass(frozen=True)
class Growth:
    """All steps of a growing text.

    ids, labels, pieces: one entry per token, P + n in total; the last token was never run.
    text: the pieces as they appear in a line, with spaces.
    changes: for each step after the first, the largest change of each matrix over all heads.
    seconds: run time of the model.
    """

    settings: GrowthSettings
    model_key: tuple[str, str]
    title: str
    config: TransformerConfig
    steps: tuple[GrownStep, ...]
    changes: tuple[dict[str, LargestChange], ...]
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    pieces: tuple[str, ...]
    text: tuple[str, ...]
    seconds: float
    note: str

    @property
    def n_prompt(self) -> int:
        """P, the number of prompt tokens."""
        return self.steps[0].n_tokens

    @property
    def n_rows(self) -> int:
        """Number of tokens that the last step ran."""
        return self.steps[-1].n_tokens

    @property
    def nbytes(self) -> int:
        """Bytes of all matrices."""
        return sum(step.nbytes for step in self.steps)

    @property
    def pretrained(self) -> Pretrained:
        """The model that ran, even if its files changed; raises as `models.by_key` does."""
        return models.by_key(self.model_key)


def _key(settings: GrowthSettings, report: Report | None = None) -> tuple[object, ...]:
    return (*models.key(settings.model), settings)


@cached(key=_key)
def growth(settings: GrowthSettings, report: Report | None = None) -> Growth:
    """Run the steps for these settings; the result is cached for all visitors.

    report: called from time to time with the number of finished steps; it can abort the run by
    raising an error.
    Raises: OverLimit if the prompt is too long to draw, the number of tokens is out of range, or
    the matrices need too much memory; ValueError if the prompt contains no token or the model
    doesn't cache keys and values.
    """
    check_choice(settings.n_new, MIN_GROWN_TOKENS, MAX_GROWN_TOKENS)
    return _grow(settings, Reporter(report))


def _grow(settings: GrowthSettings, reporter: Reporter) -> Growth:
    from attention_core import Hooks
    from pages.kv_cache.what_is_recomputed.experiment import bytes_needed, grow

    model_key = models.key(settings.model)
    model = models.by_key(model_key)
    config = model.core.config
    prompt = prepare_prompt(
        model,
        settings.prompt,
        MAX_GROWN_PROMPT,
        "a page that draws every row",
        settings.n_new,
        min_new=MIN_GROWN_TOKENS,
    )
    n_new = prompt.n_new
    needed = bytes_needed(config, len(prompt.ids), n_new)
    if needed > MAX_GROWN_BYTES:
        raise OverLimit(
            f"The matrices of {n_new} steps of this model need {needed / 1e6:,.0f} MB, over the "
            f"limit of {MAX_GROWN_BYTES / 1e6:,.0f} MB. Choose fewer tokens or a shorter prompt."
        )
    begin = time.perf_counter()
    columns = min(8, config.vocab_size)
    steps = []
    hooks = Hooks(before_layer=reporter.layer)
    for step in compute.steps(
        grow(model.core, prompt.ids, n_steps=n_new, n_columns=columns, hooks=hooks)
    ):
        steps.append(step)
        reporter.unit()
    seconds = time.perf_counter() - begin
    ids = (*prompt.ids, *(step.token_id for step in steps))
    return Growth(
        settings=settings,
        model_key=model_key,
        title=model.spec.title,
        config=config,
        steps=tuple(steps),
        changes=tuple(map(_largest_changes, steps[:-1], steps[1:])),
        ids=ids,
        labels=token_text.labels(model.tokenizer, ids),
        pieces=token_text.pieces(model.tokenizer, ids),
        text=token_text.inline_pieces(model.tokenizer, ids),
        seconds=seconds,
        note="" if n_new == settings.n_new else "More tokens don't fit into this model's context.",
    )


def names(growth: Growth, token_ids: np.ndarray) -> list[str]:
    """Short texts of vocabulary tokens for the axes of the pictures."""
    tokenizer = growth.pretrained.tokenizer
    return list(token_text.pieces(tokenizer, token_ids.tolist()))


def _largest_changes(before: GrownStep, after: GrownStep) -> dict[str, LargestChange]:
    from pages.kv_cache.what_is_recomputed.experiment import change_of_old_part

    largest_moves = {}
    for name, matrix in before.full.parts.items():
        by_head = change_of_old_part(matrix, after.full.parts[name], name)
        layer, head = divmod(int(by_head.argmax()), by_head.shape[1])
        largest_moves[name] = LargestChange(float(by_head.max()), layer, head)
    return largest_moves


def growth_with_progress(settings: GrowthSettings) -> Growth | None:
    """The steps for these settings, or None if the visitor stopped the run.

    If they aren't cached yet, they're computed now, with a progress bar and a Stop button.
    Raises: the errors of `growth` and of loading a model.
    """
    return with_progress(
        "what_is_recomputed",
        settings,
        lambda report: growth(settings, report),
        cached=growth.is_cached(settings),
        total=settings.n_new,
        unit="steps",
        done=lambda result: (
            f"Ran {len(result.steps)} steps, each without and with the cache, in "
            f"{result.seconds:.2f} s. {result.note}"
        ),
    )


def largest_changes_sentence(growth: Growth, step_index: int) -> str:
    """A Markdown sentence about the largest change of any boxed number."""
    if not step_index:
        return "In the first step, everything is new, so nothing is boxed."
    name, change = max(growth.changes[step_index - 1].items(), key=lambda item: item[1].value)
    if change.value == 0:
        return "Every bit of every boxed number is the same in all layers and heads."
    return (
        "Over all layers and heads, no boxed number changed by more than "
        f"{format_number(change.value, '.1e')} ({name}, {HeadId(change.layer, change.head)}). "
        "The largest "
        f"of these {name} is "
        f"{format_number(float(growth.steps[step_index - 1].full.parts[name].abs().max()), '.3g')}."
    )
