"""Test that a suspended process reports it, and that timings taken meanwhile don't count."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from pages.generate.generate.job import GenerationJob
from serving import race
from serving.backend import router as backend
from serving.interruptions import Heartbeat
from serving.race import CacheSize, Event, RaceRequest, RaceStep
from serving.step_times import StepTime
from serving.timing import measurement
from tests.helpers.apptest import FRAME, GENERATE, ROOT, messages, open_page
from tests.helpers.bundled_models import FIRST_GPT2


class LeapingClock:
    """A clock that advances by a millisecond per reading and leaps on request."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.mark.parametrize(
    ("gaps", "still"),
    [
        ([], 0.0),
        ([0.05] * 200, 0.0),  # ten seconds of work with timely beats
        ([0.9, 0.9, 0.9], 0.0),  # a busy machine
        ([0.05, 8.0, 0.05], 8.0),
        ([8.0, 0.05, 3.0], 11.0),
    ],
)
def test_only_missed_beats_count(gaps: list[float], still: float):
    clock = LeapingClock()
    heartbeat = Heartbeat(clock)
    for gap in gaps:
        clock.now += gap
        heartbeat.beat()
    assert heartbeat.beat() == pytest.approx(still, abs=0.01)


LOOP = """
import time
from serving.interruptions import Heartbeat

def passes():  # waits like for a GPU and uses almost no CPU time
    for number in range(6000):
        time.sleep(0.01)
        yield number

with Heartbeat(shortest_seconds=0.5) as heartbeat:
    for number, _ in heartbeat.measure_stalls(passes()):
        still = heartbeat.beat()  # the suspension can happen anywhere, even while printing
        print(number, still, flush=True)
        if still:
            break
"""


def test_suspended_process_notices_when_it_resumes():
    with subprocess.Popen(
        [sys.executable, "-c", LOOP], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        out = process.stdout
        assert out is not None
        assert out.readline().split()[0] == "0"
        os.kill(process.pid, signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        # read its earlier output, then a second without output
        while select.select([out], [], [], 1.0)[0]:
            assert float(out.readline().split()[1]) == 0
        os.kill(process.pid, signal.SIGCONT)
        stood_still = [float(line.split()[1]) for line in out]
    assert process.returncode == 0
    assert stood_still[-1] > 0.9
    assert not any(stood_still[:-1])


def make_clock_leap(
    monkeypatch: pytest.MonkeyPatch, clock: LeapingClock, at: int
) -> Callable[[int], None]:
    """Return a function, called before every layer, that makes the clock leap by 8 seconds once."""
    for module in (race, measurement):
        monkeypatch.setattr(module, "Heartbeat", lambda: Heartbeat(clock))
    calls = iter(range(10_000))

    def check_stop(_: int) -> None:
        if next(calls) == at:
            clock.now += 8.0

    return check_stop


REQUEST = RaceRequest(FIRST_GPT2, "The next day is bright", 16)


# the warm-up isn't timed: 1 + 3 passes of 6 layers, then 32
@pytest.mark.parametrize(("at", "still"), [(5, 0), (100, 8), (150, 8), (10_001, 0)])
def test_race_reports_where_it_was_suspended(
    bundled_weights: None, monkeypatch: pytest.MonkeyPatch, at: int, still: int
):
    check_stop = make_clock_leap(monkeypatch, LeapingClock(), at)
    steps = [s for s in race.race(REQUEST, check_stop) if isinstance(s, RaceStep)]
    assert len(steps) == 16
    results = [round(one.stalled_seconds) for s in steps for one in (s.cached, s.uncached)]
    assert sorted(results) == [0] * 31 + [still]


@pytest.mark.parametrize("still", [0.0, 8.0])
def test_generate_reports_no_speed_up_after_a_suspension(
    bundled_weights: None, monkeypatch: pytest.MonkeyPatch, still: float
):
    def scripted_race(*_: object) -> Iterator[Event]:
        for n in range(4):
            cached = StepTime(
                "decode", 5, -1.0, 0.1 + still * (n == 2), 1, n, n, 100, still * (n == 2)
            )
            uncached = replace(cached, seconds=0.3, stalled_seconds=0.0)
            yield RaceStep(cached, uncached, 0.0, CacheSize(1, 1))

    monkeypatch.setattr(backend, "race", scripted_race)
    job = GenerationJob(replace(REQUEST, max_new_tokens=4))
    job.run()
    assert job.stalled_seconds == still
    assert job.speed_up == (None if still else pytest.approx(3.0))
    site = AppTest.from_file(FRAME, default_timeout=60)
    site.session_state["generate_job"] = job
    open_page(site, GENERATE)
    assert not site.exception
    results = {metric.label: metric.value for metric in site.metric}
    assert results["Total speed-up"] == ("–" if still else "3.00 ×")
    assert any("about 8 s" in message for message in messages(site)) == bool(still)
