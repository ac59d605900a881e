"""A generation with the attention of its steps: made while the visitor watches, then kept.

It is made on the page's own run (`ui.widgets.progress`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from serving import models, token_text, turns
from serving.cache import kept
from serving.limits import (
    MAX_TRACED_PROMPT,
    MAX_TRACED_TOKENS,
    MIN_TRACED_TOKENS,
    TRACE_CACHE_BYTES,
)
from serving.prompts import check_choice, prepare
from ui.widgets.progress import Report, Reporter
from ui.widgets.progress import watched as with_progress

if TYPE_CHECKING:
    from attention_core.experiments.compare.generated_tokens.trace import Trace


@dataclass(frozen=True)
class Settings:
    """What a visitor asked for."""

    model: str
    prompt: str
    n_new: int
    temperature: float
    seed: int


@dataclass(frozen=True)
class Generation:
    """A finished run. labels, pieces, line_ends: an entry for each of the P + N tokens.

    Labels are unique in the text, pieces are as short as they can be. seconds: of the run that made
    it. ended: why it has fewer tokens than asked for, or nothing.
    """

    settings: Settings
    title: str
    trace: Trace
    labels: tuple[str, ...]
    pieces: tuple[str, ...]
    line_ends: tuple[bool, ...]
    seconds: float
    ended: str

    @property
    def n_prompt(self) -> int:
        """P, the number of prompt tokens."""
        return len(self.trace.prompt)


def _key(settings: Settings, report: Report | None = None) -> tuple[object, ...]:
    return (*models.key(settings.model), settings)


@kept(TRACE_CACHE_BYTES, key=_key)
def generation(settings: Settings, report: Report | None = None) -> Generation:
    """The run for these settings, kept for all visitors.

    `report` is called now and then with the number of tokens chosen so far, and may abandon the run
    by raising.
    Raises: OverLimit for a prompt that is too long or a number of tokens out of range, ValueError
    for a prompt without a token.
    """
    check_choice(settings.n_new, MIN_TRACED_TOKENS, MAX_TRACED_TOKENS)
    return _make(settings, Reporter(report))


def _make(settings: Settings, reporter: Reporter) -> Generation:
    from attention_core import Hooks, Sampling
    from attention_core.experiments.compare.generated_tokens.trace import trace

    model = models.get(settings.model)
    prompt = prepare(
        model, settings.prompt, MAX_TRACED_PROMPT, "a prompt on this page", settings.n_new
    )
    begin = time.perf_counter()
    traced = trace(
        model.core,
        prompt.ids,
        max_new_tokens=prompt.n_new,
        sampling=Sampling(settings.temperature, seed=settings.seed),
        stop_ids=model.tokenizer.end_ids,
        on_step=reporter.unit,
        hooks=Hooks(before_layer=reporter.layer),
        paced=turns.each,
    )
    seconds = time.perf_counter() - begin
    ended = prompt.note if traced.n_steps == prompt.n_new else "The model ended its text here."
    return Generation(
        settings=settings,
        title=model.spec.title,
        trace=traced,
        labels=token_text.labels(model.tokenizer, traced.ids),
        pieces=token_text.pieces(model.tokenizer, traced.ids),
        line_ends=tuple(b"\n" in one for one in token_text.raw(model.tokenizer, traced.ids)),
        seconds=seconds,
        ended=ended,
    )


def watched(settings: Settings) -> Generation | None:
    """The run, made here with progress and a Stop button if it is not kept; None once stopped.

    Raises: as `generation`, and what loading a model raises.
    """
    return with_progress(
        "generated_tokens",
        settings,
        lambda report: generation(settings, report),
        kept=generation.is_kept(settings),
        total=settings.n_new,
        unit="tokens",
        done=lambda made: (
            f"{_counted(made.trace.n_steps)}, made in {made.seconds:.2f} s. {made.ended}"
        ),
        verb="Generate",
    )


def _counted(n_steps: int) -> str:
    return "1 token, in one step" if n_steps == 1 else f"{n_steps} tokens, one step each"
