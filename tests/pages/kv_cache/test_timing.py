"""Timing: the job, what follows from its steps, and the page."""

import dataclasses
import io
import math
import threading
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from attention_core import Step, generate
from attention_core.costs.step_times import Turn, fit_step_times
from pages.kv_cache.timing import (
    charts,
    findings,
    measured,
    results,
    sections,
    stored,
    subjects,
    take_away,
)
from pages.kv_cache.timing.job import TimingJob
from pages.kv_cache.timing.measured import Recorder, Run, Series
from pages.kv_cache.timing.subjects import (
    CONTENDERS,
    CORE_CACHED,
    CORE_UNCACHED,
    LECTURE,
    THEIRS_CACHED,
    TINY,
    Question,
)
from serving import jobs, turns
from serving.jobs import JobQueue
from serving.limits import MAX_TIMED_RUNS, OverLimit
from serving.step_times import StepTime
from tests.helpers.apptest import messages, open_whole_page
from tests.helpers.bundled_models import DECODER
from tests.helpers.jobs import finish
from tests.helpers.snippets import executed

VIEW = "pages/kv_cache/timing/page.py"
PROMPT = "The next day is bright"
BOTH = (CORE_CACHED, CORE_UNCACHED)
DEADLINE = 120.0


def measured_job(question: Question) -> TimingJob:
    job = TimingJob(question)
    JobQueue().put(job)
    assert finish(job).state == "done", job.error
    return job


def step(token_id: int, logits: list[float]) -> Step:
    return Step("decode", token_id, 0.0, 0.5, 1, 1, 1, 1, torch.tensor(logits))


def run_of(cached: list[list[float]], uncached: list[list[float]]) -> Run:
    """A run with these seconds: (repeats, steps) of each way."""
    n = len(cached[0])
    keys = np.arange(5, 5 + n)
    shared = {"token_ids": np.zeros((len(cached), n), int), "n_keys": keys}
    series = {
        CORE_CACHED: Series(
            True,
            np.array(cached),
            n_new=np.ones(n, int),
            cache_length=keys,
            flops=100 + keys,
            terms=(100, 1, 0),
            **shared,
        ),
        CORE_UNCACHED: Series(
            False,
            np.array(uncached),
            n_new=keys,
            cache_length=0 * keys,
            flops=10 + 90 * keys,
            terms=(10, 90, 0),
            **shared,
        ),
    }
    question = Question(TINY, PROMPT, n, len(cached), BOTH)
    return Run(question, "cpu, float32", datetime.now(UTC), 5, 4, False, series, 1e-6, {})


def test_every_way_makes_the_core_s_own_tokens():
    job = measured_job(Question(TINY, PROMPT, 16, 2, CONTENDERS))
    model = subjects.load(TINY)
    ids = model.tokenizer.encode(PROMPT).ids
    expected = generate(model.core, ids, max_new_tokens=16)  # type: ignore[arg-type]
    run = job.run_so_far()
    assert run is not None
    assert not run.stopped
    for name, series in run.series.items():
        assert series.token_ids.tolist() == [expected, expected]
        alone = [1] * 15 if series.cached else list(range(len(ids) + 1, len(ids) + 16))
        assert series.n_new.tolist() == [len(ids), *alone]
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
    # weights of a step: per layer 12 C^2, and the vocabulary; float32
    assert run.weight_bytes(CORE_CACHED) == 4 * (2 * 12 * 64**2 + 50257 * 64)
    assert run.weight_bytes(CORE_UNCACHED) == run.weight_bytes(THEIRS_CACHED)


def test_logits_are_compared_until_tokens_part():
    recorder = Recorder(BOTH, 1)
    rounds = [((7, [0.0, 1.0]), (7, [0.0, 1.5])), ((7, [0.0, 1.0]), (8, [0.0, 3.0])),
              ((7, [0.0, 1.0]), (7, [9.0, 9.0]))]  # fmt: skip
    for one, other in rounds:
        for name, made in zip(reversed(BOTH), (other, one), strict=True):
            recorder.add(Turn(0, name, step(*made)))
    assert recorder.parted == {CORE_UNCACHED: 1}
    assert recorder.largest_difference == 2.0  # of the step that parted them, none after it
    bad = Recorder(BOTH, 1)
    for value in (math.nan, 1.0):
        for name in BOTH:
            bad.add(Turn(0, name, step(1, [value, 0.0])))
    assert math.isnan(bad.largest_difference or 0.0)


def test_of_a_stopped_run_whole_repeats_are_kept_or_the_begun_first():
    recorder = Recorder(BOTH, 3)

    def add(repeat: int, name: str, count: int) -> None:
        for _ in range(count):
            recorder.steps[name][repeat].append(StepTime("decode", 1, 0.0, 0.1, 1, 1, 1, 1))

    add(0, CORE_CACHED, 9)
    add(0, CORE_UNCACHED, 8)
    assert measured.block(recorder, 20) == (1, 8)
    add(0, CORE_CACHED, 11)
    add(0, CORE_UNCACHED, 12)
    add(1, CORE_CACHED, 5)
    assert measured.block(recorder, 20) == (1, 20)


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        ((2.0, 2.1), "the cache is **2.05 times faster**"),
        ((0.5, 0.5), "the cache **does not pay**: with it they took 2.00 times as long"),
        ((0.9, 1.2), "the repeats **do not agree** on which is faster (0.90 to 1.20 times)"),
    ],
)
def test_whether_it_pays_is_said_from_the_measurement(factor: tuple[float, float], said: str):
    cached = [[0.01 + 1e-4 * i for i in range(16)]] * 2
    uncached = [[f * value for value in cached[0]] for f in factor]
    (sentence,) = findings.sentences(run_of(cached, uncached))
    assert said in sentence
    ahead = "not ahead at 16 tokens" if factor == (0.5, 0.5) else "ahead from the first token on"
    assert ahead in sentence
    assert f"{(10 + 90 * 20) / (100 + 20):.3g} times the operations" in sentence
    end = sentence.split("by the fits, took ")[1].split(" times as long")[0]
    assert float(end) == pytest.approx(np.mean(factor), rel=0.05)


def test_numbers_of_known_times():
    n = np.arange(5, 25)
    slow = 1e-3 + 2e-4 * n + 3e-6 * n**2
    wobble = 1e-5 * np.array([1.0, -1.0] * 10)
    run = run_of([[0.004] * 20, [0.002] * 20, [0.003] * 20],
                 [list(slow + wobble)] * 3)  # fmt: skip
    expected = fit_step_times(n[1:].tolist(), (slow + wobble)[1:].tolist())
    table = findings.terms(run)
    row = table.iloc[4]  # linear, uncached
    value, error = expected.linear.value * 1e6, expected.linear.error * 1e6
    assert row["time"] == f"{value:.0f} ± {error:.2f} µs a token"
    assert row["that makes"] == f"{90 / expected.linear.value / 1e9:,.3g} GFLOP/s"
    totals = findings.times(run)
    assert totals.iloc[0]["20 tokens, s"] == "0.06 (0.04..0.08)"
    assert totals.iloc[0]["exponent of total"] == "1.00"
    assert totals.iloc[0]["first token, ms"] == "3 (2..4)"
    ratio = slow.sum() / np.array([0.08, 0.04, 0.06])
    assert findings.ratios(run).iloc[0]["20 tokens"] == (
        f"{np.median(ratio):.2f} ({ratio.min():.2f}..{ratio.max():.2f})"
    )
    # the constant of the cached steps is all their time: 100 / 2 weights of 4 bytes in 3 ms
    assert run.weight_rate(CORE_CACHED) == pytest.approx(200 / 3e-3)


def test_two_visitors_jobs_run_one_after_the_other():
    queue, running, release = JobQueue(), threading.Event(), threading.Event()

    class Held(TimingJob):
        def _load(self):  # type: ignore[no-untyped-def]
            running.set()
            assert release.wait(DEADLINE)
            return super()._load()

    first = Held(Question(TINY, PROMPT, 16, 1, BOTH))
    second = TimingJob(Question(TINY, "A second visitor's words", 16, 1, BOTH))
    queue.put(first)
    assert running.wait(DEADLINE)
    queue.put(second)
    assert (queue.ahead(first), queue.ahead(second), second.state) == (0, 1, "waiting")
    release.set()
    assert finish(second).state == "done"
    assert first.finished.is_set()
    assert first.run_so_far() is not None


def test_stop_ends_a_long_pass_at_its_next_layer():
    calls, inside = [], threading.Event()

    class Counted(TimingJob):
        def check_stop(self, layer: int = 0) -> None:
            calls.append(layer)
            if self.doing != "loading the model" and layer == 3:
                inside.set()
            super().check_stop(layer)

    # the first pass that is run has 400 tokens and more, and 30 layers
    job = Counted(Question(DECODER, "many words " * 200, 512, 5, (CORE_UNCACHED,)))
    JobQueue().put(job)
    assert inside.wait(DEADLINE)
    job.stop()
    after = len(calls)
    assert not job.live
    assert finish(job).state == "stopped"
    assert len(calls) - after <= 1  # the layer at whose start it heard of it
    assert job.run_so_far() is None
    assert "nothing is kept" in sections.status(job)[1]


def test_a_page_s_pass_goes_in_between_two_steps():
    job = TimingJob(Question(TINY, PROMPT, 512, 5, BOTH))
    JobQueue().put(job)
    while job.recorder.n_steps < 20 and not job.finished.is_set():
        job.finished.wait(0.002)
    before = job.recorder.n_steps
    with turns.turn():
        waited = job.recorder.n_steps - before
        assert job.live
    job.stop()
    finish(job)
    assert waited <= 2  # the one that was running, and the one that had asked already
    run = job.run_so_far()
    assert run is not None
    assert run.stopped
    assert "Whole repeats are kept" in sections.status(job)[1]
    assert (run.repeats, run.n_new) == (
        1,
        min(map(len, (r[0] for r in job.recorder.steps.values()))),
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_new": 513}, "16 to 512 new tokens, not 513"),
        ({"repeats": 6}, "1 to 5 repeats, not 6"),
        ({"contenders": ()}, "choose at least one way"),
        ({"contenders": ("magic",)}, "no such way to generate: magic"),
        ({"prompt": "a" * 5_001}, "1 over the limit"),
    ],
)
def test_what_cannot_be_asked(changed: dict[str, object], message: str):
    settings = {"model": TINY, "prompt": PROMPT, "n_new": 16, "repeats": 1, "contenders": BOTH}
    with pytest.raises(ValueError, match=message):
        TimingJob(Question(**settings | changed))  # type: ignore[arg-type]


def test_what_would_take_too_long_is_refused_after_the_warm_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pages.kv_cache.timing.job.MAX_TIMED_SECONDS", 0)
    job = TimingJob(Question(TINY, PROMPT, 16, 1, BOTH))
    JobQueue().put(job)
    assert finish(job).state == "failed"
    assert "this would take about 0 minutes" in job.error
    assert job.recorder.n_steps == 0
    model = subjects.load(TINY)
    with pytest.raises(OverLimit, match="over the limit of 512 for a prompt"):
        subjects.prompt_ids(model, "a " * 600, 16)
    config = dataclasses.replace(model.core.config, context_length=20)
    monkeypatch.setattr(model.core, "config", config)
    assert len(subjects.prompt_ids(model, PROMPT, 16)) == 5
    with pytest.raises(OverLimit, match="with 17 new ones needs 21 positions, .* holds 20"):
        subjects.prompt_ids(model, PROMPT, 17)


def test_the_charts():
    run = run_of(
        [[0.01 + 1e-5 * i for i in range(16)]] * 2, [[0.02 + 1e-3 * i for i in range(16)]] * 2
    )
    points, lines = charts.median_steps({"#1": run, "#2": run}), charts.fitted_steps({"#1": run})
    assert len(points) == 2 * 2 * 15
    assert points["ms"][15] == pytest.approx(21.0)
    assert points["tokens"][15] == 6
    assert points["first"].sum() == 2 * 15
    assert lines["ms"].iloc[-1] == pytest.approx(35.0)
    total = charts.totals({"#1": run})
    assert total[total["new"] == 16]["s"].tolist() == [
        pytest.approx(run.series[name].total(16).median, rel=1e-4) for name in BOTH
    ]
    for logarithmic in (False, True):
        steps = charts.per_token(points, lines, logarithmic).to_dict()
        (names,) = {
            tuple(layer["encoding"]["color"]["scale"]["domain"]) for layer in steps["layer"]
        }
        assert names == tuple(BOTH)
    curves = charts.cumulated(total).to_dict()
    assert curves["encoding"]["x"]["scale"]["domain"] == [1, 16]


def run_job(site: AppTest) -> TimingJob:
    site.button("timing_start").click().run()
    assert not site.exception
    job: TimingJob = site.session_state["timing_job"]
    finish(job)
    site.run()
    assert not site.exception
    return job


def test_the_page_shows_what_the_job_measured_and_compares(
    site: AppTest, capsys: pytest.CaptureFixture[str]
):
    link = {"timing_model": TINY, "timing_tokens": "16", "timing_repeats": "2"}
    open_whole_page(site, VIEW, **link, timing_prompt="A linked text")
    assert site.text_input("timing_prompt").value == "A linked text"
    site.multiselect("timing_ways").set_value(list(BOTH)).run()
    assert any("belong to other settings" in element.value for element in site.info)
    job = run_job(site)
    assert not site.info
    assert job.question == Question(TINY, "A linked text", 16, 2, BOTH)
    cached, uncached = (
        [sum(s.seconds for s in repeat) for repeat in job.recorder.steps[name]] for name in BOTH
    )
    ratios = np.array(uncached) / np.array(cached)
    shown = {metric.label: metric.value for metric in site.metric}
    low, high = ratios.min(), ratios.max()
    assert shown["Without ÷ with, the core"] == (
        f"{low:.2f}–{high:.2f} ×" if low < 1 < high else f"{np.median(ratios):.2f} ×"
    )
    assert shown["Same tokens"] == "yes"
    totals = site.dataframe[0].value
    assert totals["16 tokens, s"][1].startswith(f"{np.median(uncached):.3g} (")
    assert site.button("timing_stop").disabled

    second = run_job(site)
    assert site.selectbox("timing_shown").value == 2
    site.selectbox("timing_beside").set_value(1).run()
    assert not site.exception
    site.selectbox("timing_shown").set_value(1).run()  # what is shown is not beside itself
    assert site.selectbox("timing_beside").value is None
    listed = next(t.value for t in site.dataframe if "run" in t.value)
    assert listed["run"].tolist() == ["#2", "#1"]

    run = second.run_so_far()
    assert run is not None
    csv, archive = take_away.files("#2", {"#2": run}, False)
    table = pd.read_csv(io.BytesIO(csv.make()))
    assert len(table) == 2 * 2 * 16
    assert set(table["prompt"]) == {"A linked text"}
    mine = table[(table["contender"] == CORE_CACHED) & (table["repeat"] == 1)]
    assert mine["milliseconds"].tolist() == pytest.approx(
        [1e3 * s.seconds for s in second.recorder.steps[CORE_CACHED][1]]
    )
    names, _ = executed(take_away.code(run), capsys)
    for name, key in ((CORE_CACHED, "cached"), (CORE_UNCACHED, "uncached")):
        made = [s.token_id for s in names["steps"][key]]
        assert made == run.series[name].token_ids[0].tolist()
    assert archive.name.endswith(".zip")


def test_the_page_opens_on_the_stored_run_and_keeps_the_last_runs(site: AppTest):
    open_whole_page(site, VIEW)
    assert not site.exception
    assert "timing_job" not in site.session_state  # nothing is measured unasked
    run = stored.run()
    assert run.question == LECTURE
    assert (run.n_new, run.stopped) == (100, False)
    assert site.selectbox("timing_shown").value == results.STORED
    assert not site.info
    without, with_cache = (run.series[name].seconds.sum() for name in (CORE_UNCACHED, CORE_CACHED))
    shown = {metric.label: metric.value for metric in site.metric}
    assert shown["Without ÷ with, the core"] == f"{without / with_cache:.2f} ×"
    told = " ".join(element.value for element in site.text)
    assert f"{run.ended:%Y-%m-%d}" in told
    assert "cores" in told
    site.selectbox("timing_model").set_value(TINY)
    site.select_slider("timing_tokens").set_value(16).run()
    assert any("belong to other settings" in element.value for element in site.info)
    site.multiselect("timing_ways").set_value(list(BOTH)).run()
    run_job(site)
    assert site.selectbox("timing_shown").value == 1
    site.session_state["timing_runs"] = {
        number: site.session_state["timing_runs"][1] for number in range(1, MAX_TIMED_RUNS + 1)
    }
    site.session_state["timing_count"] = MAX_TIMED_RUNS
    site.run()
    site.selectbox("timing_beside").set_value(2).run()
    run_job(site)
    assert sorted(site.session_state["timing_runs"]) == list(range(2, MAX_TIMED_RUNS + 2))
    assert site.selectbox("timing_shown").value == MAX_TIMED_RUNS + 1


def test_a_run_is_stored_and_read_again():
    run = run_of([[0.5, 0.25, 0.125]], [[0.5, 0.75, 1.0]])
    again = stored.from_json(stored.to_json(run))
    for name in ("question", "device", "n_prompt", "value_bytes", "stopped", "largest_difference"):
        assert getattr(again, name) == getattr(run, name)
    assert abs(again.ended - run.ended).total_seconds() < 1
    for name, series in run.series.items():
        for field in ("seconds", "token_ids", "n_new", "n_keys", "cache_length", "flops"):
            np.testing.assert_array_equal(
                getattr(again.series[name], field), getattr(series, field)
            )
        assert again.series[name].terms == series.terms
        assert again.series[name].cached == series.cached


def test_bad_input_is_a_message_and_stays(site: AppTest):
    open_whole_page(site, VIEW, timing_model=TINY, timing_prompt=" ", timing_tokens="16")
    site.multiselect("timing_ways").set_value(list(BOTH)).run()
    site.text_input("timing_prompt").set_value("").run()
    run_job(site)
    assert any("type a word" in message for message in messages(site))
    site.multiselect("timing_ways").set_value([]).run()
    site.button("timing_start").click().run()
    assert any("choose at least one way" in message for message in messages(site))
    hostile = "![x](http://example.invalid/x.png) <b>word</b> " * 40
    site.text_input("timing_prompt").set_value(hostile)
    site.multiselect("timing_ways").set_value(list(BOTH)).run()
    run_job(site)
    assert any("over the limit of 512" in message for message in messages(site))
    assert site.text_input("timing_prompt").value == hostile
    assert not any("example.invalid" in element.value for element in site.markdown)


def test_a_hidden_tab_may_ask_once_a_minute(monkeypatch: pytest.MonkeyPatch):
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(jobs, "time", clock)
    job = jobs.Work()
    clock.now += jobs.UNWATCHED_SECONDS + 1
    assert job.abandoned  # of a visitor who left: the tab was there a moment ago
    clock.now = 1000.0 + jobs.HIDDEN_AFTER_SECONDS + 1
    job.watch()
    clock.now += 60 + jobs.UNWATCHED_SECONDS
    assert not job.abandoned
    clock.now += jobs.HIDDEN_UNWATCHED_SECONDS
    assert job.abandoned
