"""The Timing page: figures derived from the measured steps, and their display."""

from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attention_core.costs.step_times import fit_step_times
from pages.kv_cache.timing import (
    charts,
    downloads,
    findings,
    results,
    stored,
)
from pages.kv_cache.timing.job import TimingJob
from pages.kv_cache.timing.timing_run import TimingRun, TimingSeries
from serving import jobs
from serving.limits import MAX_TIMED_RUNS
from serving.timing.timed_contenders import (
    CORE_CACHED,
    CORE_UNCACHED,
    FIRST,
    TINY,
    TimingRequest,
)
from tests.helpers.apptest import messages, open_whole_page
from tests.helpers.jobs import finish
from tests.helpers.snippets import run_snippet

VIEW = "pages/kv_cache/timing/page.py"
PROMPT = "The next day is bright"
BOTH = (CORE_CACHED, CORE_UNCACHED)


def run_of(cached: list[list[float]], uncached: list[list[float]]) -> TimingRun:
    """A run with these step times in seconds: (repeats, steps) for each strategy."""
    n = len(cached[0])
    keys = np.arange(5, 5 + n)
    shared = {"token_ids": np.zeros((len(cached), n), int), "n_keys": keys}
    series = {
        CORE_CACHED: TimingSeries(
            True,
            np.array(cached),
            n_new=np.ones(n, int),
            cache_length=keys,
            flops=100 + keys,
            terms=(100, 1, 0),
            **shared,
        ),
        CORE_UNCACHED: TimingSeries(
            False,
            np.array(uncached),
            n_new=keys,
            cache_length=0 * keys,
            flops=10 + 90 * keys,
            terms=(10, 90, 0),
            **shared,
        ),
    }
    question = TimingRequest(TINY, PROMPT, n, len(cached), BOTH)
    return TimingRun(question, "cpu, float32", datetime.now(UTC), 5, 4, False, series, 1e-6, {})


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        ((2.0, 2.1), "**2.05 times faster**"),
        ((0.5, 0.5), "2.00 times as long"),
        ((0.9, 1.2), "(0.90 to 1.20 times)"),
    ],
)
def test_verdict_follows_measurement(factor: tuple[float, float], verdict: str):
    cached = [[0.01 + 1e-4 * i for i in range(16)]] * 2
    uncached = [[f * value for value in cached[0]] for f in factor]
    (sentence,) = findings.sentences(run_of(cached, uncached))
    assert verdict in sentence
    assert f"{(10 + 90 * 20) / (100 + 20):.3g} times the operations" in sentence
    end = sentence.split("by the fits, took ")[1].split(" times as long")[0]
    assert float(end) == pytest.approx(np.mean(factor), rel=0.05)


def test_figures_from_known_times():
    n = np.arange(5, 25)
    slow = 1e-3 + 2e-4 * n + 3e-6 * n**2
    wobble = 1e-5 * np.array([1.0, -1.0] * 10)
    run = run_of([[0.004] * 20, [0.002] * 20, [0.003] * 20], [list(slow + wobble)] * 3)
    expected = fit_step_times(n[1:].tolist(), (slow + wobble)[1:].tolist())
    table = findings.terms(run)
    row = table.iloc[4]  # Linear time without a cache.
    value, error = expected.linear.value * 1e6, expected.linear.error * 1e6
    assert row["time"] == f"{value:.0f} ± {error:.2f} µs per token"
    assert row["implied rate"] == f"{90 / expected.linear.value / 1e9:,.3g} GFLOP/s"
    totals = findings.times(run)
    assert totals.iloc[0]["20 tokens, s"] == "0.06 (0.04..0.08)"
    assert totals.iloc[0]["growth exponent"] == "1.00"
    assert totals.iloc[0]["first token, ms"] == "3 (2..4)"
    ratio = slow.sum() / np.array([0.08, 0.04, 0.06])
    assert findings.ratios(run).iloc[0]["20 tokens"] == (
        f"{np.median(ratio):.2f} ({ratio.min():.2f}..{ratio.max():.2f})"
    )
    # Cached steps take constant time: 100 / 2 weights of 4 bytes in 3 ms.
    assert run.weight_rate(CORE_CACHED) == pytest.approx(200 / 3e-3)


def test_charts():
    run = run_of(
        [[0.01 + 1e-5 * i for i in range(16)]] * 2, [[0.02 + 1e-3 * i for i in range(16)]] * 2
    )
    points, lines = charts.median_steps({"#1": run, "#2": run}), charts.fitted_steps({"#1": run})
    assert len(points) == 2 * 2 * 15
    assert (points["ms"][15], points["tokens"][15]) == (pytest.approx(21.0), 6)
    assert points["first"].sum() == 2 * 15
    assert lines["ms"].iloc[-1] == pytest.approx(35.0)
    total = charts.totals({"#1": run})
    assert total[total["new"] == 16]["s"].tolist() == [
        pytest.approx(run.series[name].total(16).median, rel=1e-4) for name in BOTH
    ]
    for logarithmic in (False, True):
        charts.per_token(points, lines, logarithmic).to_dict()
    charts.cumulative(total).to_dict()


def run_job(site: AppTest) -> TimingJob:
    site.button("timing_start").click().run()
    assert not site.exception
    job: TimingJob = site.session_state["timing_job"]
    finish(job)
    site.run()
    assert not site.exception
    return job


@pytest.mark.usefixtures("bundled_weights")
def test_page_shows_and_compares_measurements(site: AppTest, capsys: pytest.CaptureFixture[str]):
    link = {"timing_model": TINY, "timing_tokens": "16", "timing_repeats": "2"}
    open_whole_page(site, VIEW, **link, timing_prompt="A linked text")
    assert site.text_input("timing_prompt").value == "A linked text"
    site.multiselect("timing_ways").set_value(list(BOTH)).run()
    assert site.info  # The stored run used different settings.
    job = run_job(site)
    assert not site.info
    assert job.question == TimingRequest(TINY, "A linked text", 16, 2, BOTH)
    cached, uncached = (
        [sum(s.seconds for s in repeat) for repeat in job.recorder.steps[name]] for name in BOTH
    )
    ratios = np.array(uncached) / np.array(cached)
    metrics = {metric.label: metric.value for metric in site.metric}
    low, high = ratios.min(), ratios.max()
    assert metrics["Speed-up of the core"] == (
        f"{low:.2f}–{high:.2f} ×" if low < 1 < high else f"{np.median(ratios):.2f} ×"
    )
    assert metrics["Same tokens"] == "yes"
    totals = site.dataframe[0].value
    assert totals["16 tokens, s"][1].startswith(f"{np.median(uncached):.3g} (")
    assert site.button("timing_stop").disabled

    second = run_job(site)
    assert site.selectbox("timing_shown").value == 2
    site.selectbox("timing_beside").set_value(1).run()
    assert not site.exception
    site.selectbox("timing_shown").set_value(1).run()  # A run isn't compared with itself.
    assert site.selectbox("timing_beside").value is None
    run_table = next(t.value for t in site.dataframe if "run" in t.value)
    assert run_table["run"].tolist() == ["#2", "#1"]

    run = second.partial_run()
    assert run is not None
    table = run.export_table(downloads.MAX_PROMPT)
    assert len(table) == 2 * 2 * 16
    assert set(table["prompt"]) == {"A linked text"}
    mine = table[(table["contender"] == CORE_CACHED) & (table["repeat"] == 1)]
    assert mine["milliseconds"].tolist() == pytest.approx(
        [1e3 * s.seconds for s in second.recorder.steps[CORE_CACHED][1]]
    )
    names, _ = run_snippet(downloads.snippet(run), capsys)
    for name, key in ((CORE_CACHED, "cached"), (CORE_UNCACHED, "uncached")):
        token_ids = [[step.token_id for step in repeat] for repeat in names["steps"][key]]
        assert token_ids == run.series[name].token_ids.tolist()


@pytest.mark.usefixtures("bundled_weights")
def test_page_opens_on_the_stored_run_and_keeps_recent_runs(site: AppTest):
    open_whole_page(site, VIEW)
    assert not site.exception
    assert "timing_job" not in site.session_state  # Opening the page doesn't start a measurement.
    run = stored.run()
    assert run.question == FIRST
    assert (run.n_new, run.stopped) == (100, False)
    assert site.selectbox("timing_shown").value == results.STORED
    assert not site.info
    without, with_cache = (run.series[name].seconds.sum(1) for name in (CORE_UNCACHED, CORE_CACHED))
    metrics = {metric.label: metric.value for metric in site.metric}
    assert metrics["Speed-up of the core"] == f"{np.median(without / with_cache):.2f} ×"
    assert any(f"{run.ended:%Y-%m-%d}" in element.value for element in site.text)
    site.selectbox("timing_model").set_value(TINY)
    site.select_slider("timing_tokens").set_value(16).run()
    assert site.info
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


def test_stored_run_round_trip():
    run = run_of([[0.5, 0.25, 0.125]], [[0.5, 0.75, 1.0]])
    restored = stored.from_json(stored.to_json(run))
    for name in ("question", "device", "n_prompt", "value_bytes", "stopped", "largest_difference"):
        assert getattr(restored, name) == getattr(run, name)
    assert abs(restored.ended - run.ended).total_seconds() < 1
    for name, series in run.series.items():
        for field in ("seconds", "token_ids", "n_new", "n_keys", "cache_length", "flops"):
            np.testing.assert_array_equal(
                getattr(restored.series[name], field), getattr(series, field)
            )
        assert restored.series[name].terms == series.terms
        assert restored.series[name].cached == series.cached


@pytest.mark.usefixtures("bundled_weights")
def test_invalid_input_shows_message_and_is_kept(site: AppTest):
    open_whole_page(site, VIEW, timing_model=TINY, timing_tokens="16")
    hostile = "![x](http://example.invalid/x.png) <b>word</b> " * 40
    site.multiselect("timing_ways").set_value(list(BOTH)).run()
    for prompt, message in (("", "type a word"), (hostile, "over the limit of 512")):
        site.text_input("timing_prompt").set_value(prompt).run()
        run_job(site)
        assert any(message in text for text in messages(site))
    assert site.text_input("timing_prompt").value == hostile
    assert not any("example.invalid" in element.value for element in site.markdown)
    site.multiselect("timing_ways").set_value([]).run()
    site.button("timing_start").click().run()
    assert any("at least one way" in text for text in messages(site))


def test_hidden_tab_may_poll_once_a_minute(monkeypatch: pytest.MonkeyPatch):
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(jobs, "time", clock)
    job = jobs.BackgroundJob()
    clock.now += jobs.UNWATCHED_SECONDS + 1
    assert job.is_abandoned  # A visible tab that stops polling was closed.
    clock.now = 1000.0 + jobs.HIDDEN_AFTER_SECONDS + 1
    job.keep_alive()
    clock.now += 60 + jobs.UNWATCHED_SECONDS
    assert not job.is_abandoned
    clock.now += jobs.HIDDEN_UNWATCHED_SECONDS
    assert job.is_abandoned
