"""The Timing job: tokens, steps, compute slots and invalid requests."""

import copy
import dataclasses
import math
import threading

import pytest
import torch

from attention_core import Step, generate
from attention_core.costs.step_times import ContenderStep
from attention_core.speed.decoder import Decoder
from pages.kv_cache.timing import (
    findings,
    timing_run,
)
from pages.kv_cache.timing.job import TimingJob
from pages.kv_cache.timing.timing_run import Recorder
from serving import compute, reduced_precision
from serving.jobs import JobQueue
from serving.limits import OverLimit
from serving.step_times import StepTime
from serving.timing import timed_contenders
from serving.timing.measurement import LogitComparison
from serving.timing.timed_contenders import (
    CORE_CACHED,
    CORE_GRAPHS,
    CORE_INT8,
    CORE_UNCACHED,
    FULL_PRECISION,
    TINY,
    TRANSFORMERS_CACHED,
    TimingRequest,
)
from tests.helpers.bundled_models import DECODER
from tests.helpers.jobs import finish, watch_until

PROMPT = "The next day is bright"
BOTH = (CORE_CACHED, CORE_UNCACHED)
DEADLINE = 120.0


def measured_job(question: TimingRequest) -> TimingJob:
    job = TimingJob(question)
    JobQueue().put(job)
    assert finish(job).state == "done", job.error
    return job


def step(token_id: int, logits: list[float]) -> Step:
    return Step("decode", token_id, 0.0, 0.5, 1, 1, 1, 1, torch.tensor(logits))


def test_every_strategy_generates_the_core_tokens():
    job = measured_job(TimingRequest(TINY, PROMPT, 16, 2, FULL_PRECISION))
    model = timed_contenders.load(TINY)
    ids = model.tokenizer.encode(PROMPT).ids
    expected = generate(model.core, ids, max_new_tokens=16)  # type: ignore[arg-type]
    run = job.partial_run()
    assert run is not None
    assert not run.stopped
    for name, series in run.series.items():
        assert series.token_ids.tolist() == [expected, expected]
        row_counts = [1] * 15 if series.cached else list(range(len(ids) + 1, len(ids) + 16))
        assert series.n_new.tolist() == [len(ids), *row_counts]
        constant, linear, quadratic = series.terms
        n = series.n_keys[1:]
        assert series.flops[1:].tolist() == (constant + linear * n + quadratic * n * n).tolist()
        assert [[s.seconds for s in repeat] for repeat in job.recorder.steps[name]] == (
            series.seconds.tolist()
        )
    assert run.parted == {}
    assert run.largest_difference is not None
    assert 0 < run.largest_difference < 1e-4
    assert (job.progress, job.remaining_seconds) == (1.0, pytest.approx(0.0))
    # Weights read per step: 12 C^2 per layer plus the vocabulary, in float32.
    assert run.weight_bytes(CORE_CACHED) == 4 * (2 * 12 * 64**2 + 50257 * 64)
    assert run.weight_bytes(CORE_UNCACHED) == run.weight_bytes(TRANSFORMERS_CACHED)


def test_int8_is_timed_but_not_compared():
    job = measured_job(TimingRequest(TINY, PROMPT, 16, 1, (CORE_CACHED, CORE_INT8)))
    model, core = timed_contenders.load(TINY), timed_contenders._untrained_int8(TINY)
    ids = model.tokenizer.encode(PROMPT).ids
    cache = core.new_cache(1, len(ids) + 15)
    expected = generate(core, ids, max_new_tokens=16, cache=cache)  # type: ignore[arg-type]
    run = job.partial_run()
    assert run is not None
    assert run.series[CORE_INT8].token_ids.tolist() == [expected]
    assert (run.parted, run.largest_difference) == ({}, None)
    assert "Same tokens" not in findings.headline(run)
    assert 4 * run.weight_bytes(CORE_INT8) == run.weight_bytes(CORE_CACHED)
    [message] = [line for line in findings.sentences(run) if "int8" in line]
    assert f"{run.ratio(CORE_CACHED, CORE_INT8, 16).median:.2f} ×" in message


def test_graph_steps_require_a_gpu(monkeypatch):
    monkeypatch.setattr(reduced_precision, "has_gpu", lambda: False)
    assert CORE_GRAPHS not in timed_contenders.available_contenders()
    job = TimingJob(TimingRequest(TINY, PROMPT, 16, 1, (CORE_GRAPHS,)))
    JobQueue().put(job)
    assert finish(job).state == "failed"
    assert "needs a GPU" in job.error
    # Without a GPU, the same steps run one by one.
    monkeypatch.setattr(reduced_precision, "has_gpu", lambda: True)
    assert CORE_GRAPHS in timed_contenders.available_contenders()
    job = measured_job(TimingRequest(TINY, PROMPT, 16, 2, (CORE_CACHED, CORE_GRAPHS)))
    model = timed_contenders.load(TINY)
    core = copy.deepcopy(model.core).to(torch.bfloat16)
    ids = model.tokenizer.encode(PROMPT).ids
    expected = Decoder(core, len(ids) + 15).generate(ids, max_new_tokens=16)
    run = job.partial_run()
    assert run is not None
    assert run.series[CORE_GRAPHS].token_ids.tolist() == [expected, expected]
    assert (run.parted, run.largest_difference) == ({}, None)
    assert 2 * run.weight_bytes(CORE_GRAPHS) == run.weight_bytes(CORE_CACHED)
    [message] = [line for line in findings.sentences(run) if "bfloat16" in line]
    ratio = run.ratio(CORE_CACHED, CORE_GRAPHS, 16)
    agree = not ratio.low < 1 < ratio.high  # Two repeats of such a short text may disagree.
    expected_text = f"{ratio.median:.2f} ×" if agree else f"{ratio.low:.2f}–{ratio.high:.2f} ×"
    assert f"is {expected_text} as fast" in message


def test_logits_are_compared_until_tokens_part():
    comparison = LogitComparison(BOTH)
    rounds = [((7, [0.0, 1.0]), (7, [0.0, 1.5])), ((7, [0.0, 1.0]), (8, [0.0, 3.0])),
              ((7, [0.0, 1.0]), (7, [9.0, 9.0]))]  # fmt: skip
    for one, other in rounds:
        for name, token_steps in zip(reversed(BOTH), (other, one), strict=True):
            comparison.add(ContenderStep(0, name, step(*token_steps)))
    assert comparison.parted == {CORE_UNCACHED: 1}
    # The comparison includes the step where the tokens diverged and stops there.
    assert comparison.largest_difference == 2.0
    bad = LogitComparison(BOTH)
    for value in (math.nan, 1.0):
        for name in BOTH:
            bad.add(ContenderStep(0, name, step(1, [value, 0.0])))
    assert math.isnan(bad.largest_difference or 0.0)


def test_stopped_run_keeps_complete_repeats():
    recorder = Recorder(BOTH, 3)

    def add(repeat: int, name: str, count: int) -> None:
        for _ in range(count):
            recorder.steps[name][repeat].append(StepTime("decode", 1, 0.0, 0.1, 1, 1, 1, 1))

    add(0, CORE_CACHED, 9)
    add(0, CORE_UNCACHED, 8)
    assert timing_run.complete_block(recorder, 20) == (1, 8)
    add(0, CORE_CACHED, 11)
    add(0, CORE_UNCACHED, 12)
    add(1, CORE_CACHED, 5)
    assert timing_run.complete_block(recorder, 20) == (1, 20)


def test_stop_ends_a_long_pass_at_its_next_layer():
    calls, inside = [], threading.Event()

    class RecordingJob(TimingJob):
        def check_stop(self, layer: int = 0) -> None:
            calls.append(layer)
            if self.phase != "loading the model" and layer == 3:
                inside.set()
            super().check_stop(layer)

    # The first pass reads at least 400 tokens in 30 layers.
    job = RecordingJob(TimingRequest(DECODER, "many words " * 200, 512, 5, (CORE_UNCACHED,)))
    JobQueue().put(job)
    watch_until(inside, job)
    job.stop()
    after = len(calls)
    assert not job.is_live
    assert finish(job).state == "stopped"
    # The layer that was starting when the stop was requested may still finish.
    assert len(calls) - after <= 1
    assert job.partial_run() is None


def test_page_gets_a_compute_slot_between_two_steps():
    job = TimingJob(TimingRequest(TINY, PROMPT, 512, 5, BOTH))
    JobQueue().put(job)
    while job.recorder.n_steps < 20 and not job.finished.is_set():
        job.finished.wait(0.002)
        job.keep_alive()
    before = job.recorder.n_steps
    with compute.slot():
        steps_before_slot = job.recorder.n_steps - before
        assert job.is_live
    job.stop()
    finish(job)
    assert steps_before_slot <= 2  # One step was running and one more had already requested a slot.
    run = job.partial_run()
    assert run is not None
    assert run.stopped
    assert run.repeats == 1
    assert run.n_new == min(len(repeats[0]) for repeats in job.recorder.steps.values())


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"n_new": 513}, "not 513"),
        ({"repeats": 6}, "not 6"),
        ({"contenders": ()}, "at least one way"),
        ({"contenders": ("magic",)}, "magic"),
        ({"prompt": "a" * 5_001}, "1 over the limit"),
    ],
)
def test_rejects_invalid_requests(changed: dict[str, object], name: str):
    settings = {"model": TINY, "prompt": PROMPT, "n_new": 16, "repeats": 1, "contenders": BOTH}
    with pytest.raises(ValueError, match=name):
        TimingJob(TimingRequest(**settings | changed))  # type: ignore[arg-type]


def test_too_slow_measurement_is_rejected_after_warm_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("serving.timing.measurement.MAX_TIMED_SECONDS", 0)
    job = TimingJob(TimingRequest(TINY, PROMPT, 16, 1, BOTH))
    JobQueue().put(job)
    assert finish(job).state == "failed"
    assert "minutes" in job.error
    assert job.recorder.n_steps == 0
    model = timed_contenders.load(TINY)
    with pytest.raises(OverLimit, match="limit of 512"):
        timed_contenders.prompt_ids(model, "a " * 600, 16)
    config = dataclasses.replace(model.core.config, context_length=20)
    monkeypatch.setattr(model.core, "config", config)
    assert len(timed_contenders.prompt_ids(model, PROMPT, 16)) == 5
    with pytest.raises(OverLimit, match="21 positions.* 20"):
        timed_contenders.prompt_ids(model, PROMPT, 17)
