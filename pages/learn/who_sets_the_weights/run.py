"""Gradient descent on the visitor's text, on a copy of the chosen model.

The process has at most one copy at a time. The model cache counts its bytes, and it is deleted when
the run ends. The model that all visitors share is only read.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pretrained import Pretrained, Tokens
from serving import compute, models
from serving.cache import MODELS, cached
from serving.limits import MAX_TRAINED_COPY_BYTES, MAX_TRAINED_TOKENS, MAX_TRAINING_STEPS, OverLimit
from serving.prompts import prepare_prompt
from ui.widgets.progress import Report, Reporter

if TYPE_CHECKING:
    from pages.learn.who_sets_the_weights.experiment import (
        GradientStep,
        Part,
        PartChange,
        PassSummary,
        Training,
    )

RATES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
PURPOSE = "this page"

_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class FineTuningSettings:
    """The model, the text, the learning rate and the number of steps."""

    model: str
    text: str
    learning_rate: float
    n_steps: int


@dataclass(frozen=True)
class FineTunedRun:
    """A finished run.

    losses: the loss before the first step and after every step. first: the first step, including
    the pass before it. after: a pass of the trained model. changes: how far each part of the model
    moved in total. n_numbers: the number of parameters. n_cache_bytes: size of a KV cache for the
    text. seconds: time of the steps only.
    """

    settings: FineTuningSettings
    tokens: Tokens
    losses: tuple[float, ...]
    first: GradientStep
    after: PassSummary
    changes: dict[Part, PartChange]
    n_numbers: int
    n_cache_bytes: int
    seconds: float

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per token."""
        return self.tokens.labels


def _key(settings: FineTuningSettings, report: Report | None = None) -> tuple[object, ...]:
    return (*models.key(settings.model), settings)


@cached(key=_key)
def run(settings: FineTuningSettings, report: Report | None = None) -> FineTunedRun:
    """Train with these settings; the result is cached for all visitors.

    report: gets the number of finished passes, one per step and one at the end. It can abort the
    run by raising an error.
    Raises: OverLimit for too many tokens or steps, or a model whose copy is too large; ValueError
    for fewer than two tokens or a learning rate that isn't in `RATES`; the errors of loading.
    """
    if not 1 <= settings.n_steps <= MAX_TRAINING_STEPS:
        raise OverLimit(f"Choose 1 to {MAX_TRAINING_STEPS} steps, not {settings.n_steps}.")
    if settings.learning_rate not in RATES:
        raise ValueError(f"the learning rate must be one of {RATES}, got {settings.learning_rate}")
    model = models.get(settings.model)
    tokens = prepare_prompt(model, settings.text, MAX_TRAINED_TOKENS, PURPOSE).tokens
    if len(tokens.ids) < 2:
        raise ValueError("A single token has no next token to predict. Type another word.")
    reporter = Reporter(report)
    while not _one_at_a_time.acquire(timeout=0.2):
        reporter.layer(0)  # lets a waiting visitor stop
    try:
        return _train(settings, model, tokens, reporter)
    finally:
        _training_copy.clear()
        _one_at_a_time.release()


def _train(
    settings: FineTuningSettings, model: Pretrained, tokens: Tokens, reporter: Reporter
) -> FineTunedRun:
    from attention_core import Hooks
    from pages.learn.who_sets_the_weights.experiment import training_bytes

    hooks = Hooks(before_layer=reporter.layer)
    n_bytes = training_bytes(model.core)
    limit = min(MAX_TRAINED_COPY_BYTES, MODELS.max_bytes)
    if n_bytes > limit:
        raise OverLimit(
            f"Training a copy of {model.spec.title} needs {n_bytes / 1e6:,.0f} MB with its "
            f"gradients, but this page's limit is {limit / 1e6:,.0f} MB. Choose a smaller model."
        )
    training = _training_copy(settings, model, tokens)
    losses, seconds, first = [], 0.0, None
    trained = (training.step(hooks) for _ in range(settings.n_steps))
    for step in compute.steps(trained, seconds=0):
        first = first or step
        losses.append(step.before.loss)
        seconds += step.seconds
        reporter.unit()
    assert first is not None
    with compute.slot():
        after = training.summarize(hooks)
        change = training.changes()
    losses.append(after.loss)
    if not all(map(math.isfinite, losses)):
        raise ValueError(
            "The steps were too large, and the loss overflowed. Choose a smaller learning rate."
        )
    return FineTunedRun(
        settings=settings,
        tokens=tokens,
        losses=tuple(losses),
        first=first,
        after=after,
        changes=change,
        n_numbers=sum(part.n_numbers for part in change.values()),
        n_cache_bytes=model.core.new_cache(1, len(tokens.ids)).nbytes,
        seconds=seconds,
    )


@cached(cache=MODELS, key=lambda settings, *_: settings, size=lambda training: training.n_bytes)
def _training_copy(settings: FineTuningSettings, model: Pretrained, tokens: Tokens) -> Training:
    """A copy to train, cached until the run ends so that its bytes are counted."""
    import torch

    from pages.learn.who_sets_the_weights.experiment import Training

    ids = torch.tensor([tokens.ids], device=model.device)
    return Training(model.core, ids, settings.learning_rate)
