"""A cached generation with the attention weights of all its steps.

The model runs within the page run, with a progress bar (`ui.widgets.progress`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from serving import compute, metrics, models, token_text
from serving.cache import cached
from serving.limits import MAX_TRACED_PROMPT, MAX_TRACED_TOKENS, MIN_TRACED_TOKENS
from serving.prompts import check_choice, prepare_prompt
from ui.widgets.progress import Report, Reporter
from ui.widgets.progress import run_with_progress as with_progress

if TYPE_CHECKING:
    from pages.compare.generated_tokens.experiment.trace import Trace
    from pretrained import Pretrained


@dataclass(frozen=True)
class SamplingSettings:
    """The selected model, prompt and sampling settings."""

    model: str
    prompt: str
    n_new: int
    temperature: float
    seed: int


@dataclass(frozen=True)
class Generation:
    """A finished generation.

    labels, pieces, line_ends: one entry for each of the P + N tokens. Labels are unique in the
    text, pieces are as short as possible, and a line end is True if the token contains a line
    break. seconds: how long the model ran. end_reason: why there are fewer tokens than requested,
    or "".
    """

    settings: SamplingSettings
    model_key: tuple[str, str]
    title: str
    trace: Trace
    labels: tuple[str, ...]
    pieces: tuple[str, ...]
    line_ends: tuple[bool, ...]
    seconds: float
    end_reason: str

    @property
    def n_prompt(self) -> int:
        """P, the number of prompt tokens."""
        return len(self.trace.prompt)

    @property
    def pretrained(self) -> Pretrained:
        """The model that ran, even if its files have changed. Errors: see `models.by_key`."""
        return models.by_key(self.model_key)


def _key(settings: SamplingSettings, report: Report | None = None) -> tuple[object, ...]:
    return (*models.key(settings.model), settings)


@cached(key=_key)
def generation(settings: SamplingSettings, report: Report | None = None) -> Generation:
    """Run these settings, cached for all visitors.

    `report` is called periodically with the number of tokens chosen so far, and can cancel the run
    by raising an error.
    Raises: OverLimit for a prompt that is too long or a token count out of range; ValueError for a
    prompt without tokens.
    """
    check_choice(settings.n_new, MIN_TRACED_TOKENS, MAX_TRACED_TOKENS)
    return _generate(settings, Reporter(report))


def _generate(settings: SamplingSettings, reporter: Reporter) -> Generation:
    from attention_core import Hooks, Sampling
    from pages.compare.generated_tokens.experiment.trace import trace

    model_key = models.key(settings.model)
    model = models.by_key(model_key)
    prompt = prepare_prompt(
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
        in_slots=lambda steps: metrics.count_steps(compute.steps(steps)),
    )
    seconds = time.perf_counter() - begin
    ended = prompt.note if traced.n_steps == prompt.n_new else "The model ended its text here."
    return Generation(
        settings=settings,
        model_key=model_key,
        title=model.spec.title,
        trace=traced,
        labels=token_text.labels(model.tokenizer, traced.ids),
        pieces=token_text.pieces(model.tokenizer, traced.ids),
        line_ends=tuple(
            b"\n" in token_bytes
            for token_bytes in token_text.token_bytes(model.tokenizer, traced.ids)
        ),
        seconds=seconds,
        end_reason=ended,
    )


def generation_with_progress(settings: SamplingSettings) -> Generation | None:
    """The generation for these settings, or None if the visitor stopped it.

    Without a cached result, it's computed now with a progress bar and a Stop button.
    Raises: the errors of `generation` and of loading a model.
    """
    return with_progress(
        "generated_tokens",
        settings,
        lambda report: generation(settings, report),
        cached=generation.is_cached(settings),
        total=settings.n_new,
        unit="tokens",
        done=_summary,
    )


def _summary(result: Generation) -> str:
    n_steps, settings = result.trace.n_steps, result.settings
    counts = "1 token, in one step" if n_steps == 1 else f"{n_steps} tokens, one step each"
    chosen = f"at temperature {settings.temperature:g}"
    if settings.temperature:
        chosen += f" with seed {settings.seed}"
    return f"{counts}, {chosen}, in {result.seconds:.2f} s. {result.end_reason}"
