"""A job that times the decode steps of every form of attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from statistics import quantiles
from typing import TYPE_CHECKING

import pandas as pd

from pages.kv_cache.variants.key_readers import ABSORBED, LONGEST, family, names, token_ids
from serving import cache, compute
from serving.jobs import BackgroundJob
from ui.text.formatting import format_number

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core import KVCache, Transformer

CONTEXTS = [256, 512, 1024, 2048, LONGEST]
REPEATS = 25  # rounds; each form runs once per round
STEPS = 3  # decode steps in a row; their mean is one measurement
CHUNK = 128  # context tokens per pass, which limits how long other pages wait
EXPANDED = "MLA expanded"
IN_FILE_ONLY = ("fastest, ms", "slowest, ms")  # columns that don't fit on the page
FILLING_CACHES = 0.5  # share of the progress bar for filling the caches


@dataclass(frozen=True)
class TimingSetup:
    """What to time: the prompt's bytes, the query heads and the context to fill."""

    ids: tuple[int, ...]
    n_heads: int
    context: int


@dataclass(frozen=True)
class VariantTimes:
    """Seconds of a decode step by form, one number per round.

    cache_bytes: measured size. operations: counted operations of one step. difference: largest
    logit difference between absorbed and expanded latent attention on the same cache.
    """

    setting: TimingSetup
    seconds: dict[str, tuple[float, ...]]
    cache_bytes: dict[str, int]
    operations: dict[str, int]
    difference: float
    threads: int
    at: datetime

    @property
    def ratios(self) -> dict[str, tuple[float, float, float]]:
        """Each form's time ÷ MHA's in the same round: median, first and third quartile.

        Quartiles, not extremes: on a busy machine, one round in ten is many times slower.
        """
        from attention_core.costs.stopwatch import paired_ratio

        ratios = {}
        for name, values in self.seconds.items():
            low, middle, high = quantiles(paired_ratio(values, self.seconds["MHA"]).values, n=4)
            ratios[name] = middle, low, high
        return ratios

    @property
    def table(self) -> pd.DataFrame:
        """One row per form."""
        from attention_core.costs.stopwatch import Samples

        rows = []
        for name, (ratio, low, high) in self.ratios.items():
            step = Samples(self.seconds[name])
            rows.append(
                {
                    "form": name,
                    "ms per step": step.median * 1e3,
                    "MHA = 1": ratio,
                    "from": low,
                    "to": high,
                    "cache, MB": self.cache_bytes[name] / 1e6,
                    "million ops": self.operations[name] / 1e6,
                    "fastest, ms": step.low * 1e3,
                    "slowest, ms": step.high * 1e3,
                }
            )
        return pd.DataFrame(rows)


def forms(n_heads: int) -> list[str]:
    """The timed forms: the ladder, with latent attention absorbed and expanded."""
    return [*names(n_heads)[:-1], ABSORBED, EXPANDED]


def operations(n_heads: int, context: int) -> dict[str, int]:
    """Operations of one decode step after `context` tokens by form, from the shapes."""
    from attention_core.costs.formulas import forward_flops

    models = family(n_heads)
    models = {**models, EXPANDED: models["MLA"]}
    return {name: forward_flops(models[name].config, 1, context + 1) for name in forms(n_heads)}


def cached_times(setting: TimingSetup, round_: int) -> VariantTimes | None:
    """The cached times for a setting from this round, or None."""
    return measure_times.peek(setting, round_)


@cache.cached(key=lambda setting, round_, measure=None: (setting, round_))
def measure_times(
    setting: TimingSetup, round_: int, measure: Callable[[], VariantTimes]
) -> VariantTimes:
    """The result of `measure` for this setting, cached for all visitors."""
    return measure()


class VariantTimingJob(BackgroundJob):
    """Fill a cache for every form, then time their decode steps in turn.

    The worker writes; the page reads. Each pass gets its own compute slot, so others wait for one
    pass at most. Timed passes get an exclusive slot, so no other model runs during them.
    """

    def __init__(self, setting: TimingSetup, round_: int) -> None:
        super().__init__()
        self.setting, self.round = setting, round_
        self.progress = 0.0
        self.phase = "Starting …"
        self._threads = 0  # torch threads during the timed steps

    def work(self) -> None:
        """Run the measurement and cache the result."""
        measure_times(self.setting, self.round, self._measure)
        self.progress = 1.0

    def _measure(self) -> VariantTimes:
        import torch

        from attention_core.costs.stopwatch import interleave
        from pages.kv_cache.variants.experiment.forms import repeat_tokens

        setting = self.setting
        models = family(setting.n_heads)
        models = {**models, EXPANDED: models["MLA"]}
        shown = forms(setting.n_heads)
        prompt = repeat_tokens(models["MHA"], setting.ids, setting.context + STEPS)
        caches: dict[str, KVCache] = {}
        for place, name in enumerate(shown):
            if name == EXPANDED:  # both forms use the same cache
                caches[name] = caches[ABSORBED]
                continue
            self.phase = f"Filling {setting.context:,} tokens of cache: {name}"
            caches[name] = self._fill_cache(models[name], prompt[:, : setting.context])
            self.progress = FILLING_CACHES * (place + 1) / len(shown)
        runs = {name: self._run(models[name], caches[name], prompt) for name in shown}
        self.phase = f"Timing {len(shown)} forms"
        rounds = interleave(runs, repeats=REPEATS, warmups=2)
        last = {}
        for name in (ABSORBED, EXPANDED):
            with compute.slot(), torch.inference_mode():
                step = prompt[:, setting.context : setting.context + 1]
                last[name] = models[name](step, cache=caches[name], last_only=True).logits
            caches[name].crop(setting.context)
        return VariantTimes(
            setting=setting,
            seconds={name: tuple(values) for name, values in rounds.items()},
            cache_bytes={name: cache.nbytes_used for name, cache in caches.items()},
            operations=operations(setting.n_heads, setting.context),
            difference=float((last[ABSORBED] - last[EXPANDED]).abs().max()),
            threads=self._threads,
            at=datetime.now(UTC),
        )

    def _fill_cache(self, model: Transformer, prompt: Tensor) -> KVCache:
        import torch

        from attention_core import Hooks

        cache = model.new_cache(1, prompt.shape[1] + STEPS)
        for first in range(0, prompt.shape[1], CHUNK):
            chunk = prompt[:, first : first + CHUNK]
            with compute.slot(), torch.inference_mode():
                model(chunk, cache=cache, last_only=True, hooks=Hooks(before_layer=self.check_stop))
        return cache

    def _run(self, model: Transformer, cache: KVCache, prompt: Tensor) -> Callable[[], float]:
        """A function that times some steps after the context and then undoes them."""
        import torch

        from attention_core.costs.stopwatch import seconds_of

        context = self.setting.context
        each = (1 - FILLING_CACHES) / ((REPEATS + 2) * len(forms(self.setting.n_heads)))

        def steps() -> float:
            taken = 0.0
            for place in range(context, context + STEPS):
                self.check_stop()
                step = partial(model, prompt[:, place : place + 1], cache=cache, last_only=True)
                with compute.slot(exclusive=True), torch.inference_mode():
                    taken += seconds_of(step)
                    self._threads = torch.get_num_threads()
            cache.crop(context)
            self.progress = min(1.0, self.progress + each)
            return taken / STEPS

        return steps


def summary(times: VariantTimes) -> str:
    """Sentences about the measured times, without visitor input."""
    ratios = {name: ratio for name, ratio in times.ratios.items() if name != "MHA"}
    usual = {name: ratio for name, ratio in ratios.items() if name != EXPANDED}
    clear = {name: ratio for name, ratio in usual.items() if ratio[2] < 1} or usual
    best = min(clear, key=lambda name: clear[name][0])
    middle, low, high = clear[best]
    if high < 1:
        first = f"Clearly faster than MHA: {', '.join(clear)}. {best} takes {middle:.2f} of MHA's "
        first += f"time in the median round, and {low:.2f} to {high:.2f} in the middle half."
    elif middle < 1:
        first = (
            f"No form is clearly faster than MHA here. {best} has the smallest median with "
            f"{middle:.2f} of MHA's time, but the middle half of its rounds goes up to {high:.2f}."
        )
    else:
        first = f"No form is faster than MHA here. {best} has the smallest median, {middle:.2f}."
    small = times.cache_bytes["MHA"] / times.cache_bytes["MQA"]
    absorbed, expanded = ratios[ABSORBED][0], ratios[EXPANDED][0]
    work = times.operations[EXPANDED] / times.operations[ABSORBED]
    return (
        f"{first} MQA's cache is {small:.0f} times smaller than MHA's, but its step still takes "
        f"{ratios['MQA'][0]:.2f} of the time, because a step has to read all the weights as well. "
        f"MLA takes {absorbed:.2f} of MHA's time when absorbed and {expanded:.2f} when expanded. "
        "The expanded form computes the keys and values of all "
        f"{times.setting.context:,} tokens again in every step, which takes {work:.1f} times the "
        "operations of the absorbed form. The logits of the two forms differ by at most "
        f"{format_number(times.difference, '.1e')}."
    )


def setting(text: str, n_heads: int, context: int) -> TimingSetup:
    """Build a setup; raises OverLimit or ValueError for a prompt that can't be run."""
    return TimingSetup(tuple(token_ids(text)), n_heads, context)
