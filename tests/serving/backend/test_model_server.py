"""Compare a site with and without a model server: equal results, a message for every failure."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import uvicorn
from torch.testing import assert_close

from serving import compute, models, race, recording
from serving.backend import client, codec, router, service
from serving.backend.codec import END, Event, ServerUnavailable
from serving.jobs import BackgroundJob, JobStopped
from serving.limits import MAX_MAP_TOKENS, MAX_REQUEST_BYTES, STUCK_SECONDS, OverLimit
from serving.race import RaceEnded, RaceRequest, RaceStarted, RaceStep
from serving.timing import measurement
from serving.timing.measurement import PhaseStarted, TimedStep
from serving.timing.timed_contenders import CORE_CACHED, CORE_UNCACHED, TINY, TimingRequest
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.waiting import wait_until

ROOT = Path(__file__).resolve().parents[3]
TEXT = "The animal didn't cross the street"
QUESTION = TimingRequest(TINY, "The next day is bright", 16, 2, (CORE_CACHED, CORE_UNCACHED))
REQUEST = RaceRequest(DECODER, "The next day is bright", 6)
SERVE_URL = "ATTENTION_LAB_SERVE_URL"


def never(_: int) -> None:
    """Never stop."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def wait_for(address: str) -> None:
    for _ in range(600):
        with contextlib.suppress(httpx2.HTTPError):
            httpx2.get(address)
            return
        threading.Event().wait(0.1)
    raise AssertionError("the server does not listen")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Yield the address of a model server that runs in a thread of this process."""
    port = free_port()
    # keep this process's loggers, because other tests capture them
    config = uvicorn.Config(service.app, port=port, log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_for(f"http://127.0.0.1:{port}/healthz")
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(30)


@pytest.fixture(autouse=True)
def _server_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "_unavailable_until", 0.0)


@pytest.fixture
def site(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configure this process as a site with the model server."""
    monkeypatch.setenv(SERVE_URL, address + "/")


@pytest.fixture
def one_slot(monkeypatch: pytest.MonkeyPatch) -> threading.BoundedSemaphore:
    slot = threading.BoundedSemaphore(1)
    monkeypatch.setattr(service, "_capacity", slot)
    return slot


def answer_with(monkeypatch: pytest.MonkeyPatch, *chunks: bytes, status: int = 200) -> None:
    """Give this response to every request of the site."""
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, content=iter(chunks)))
    http = httpx2.Client(transport=transport)
    monkeypatch.setattr(client, "http_client", lambda: http)
    monkeypatch.setenv(SERVE_URL, "http://models:8600")


def ids_of(name: str) -> list[int]:
    return models.get(name).tokenizer.encode(TEXT).ids


def check_recorded_pass(name: str = DECODER) -> None:
    """Check that the site's recorded pass matches this process's."""
    model, ids = models.get(name), ids_of(name)
    received, expected = router.record_pass(model, ids), recording.record_pass(model, ids)
    assert received.scale == expected.scale
    assert_close(vars(received.tensors), vars(expected.tensors), rtol=0, atol=0)


def without_times(events: Iterator[race.Event]) -> list[tuple[object, ...]]:
    return [
        (event.cached.token_id, event.uncached.token_id, event.cache_size, event.cached.flops)
        if isinstance(event, RaceStep)
        else (event,)
        for event in events
    ]


# ---- equal results


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_recorded_pass_is_the_same(name: str):
    check_recorded_pass(name)
    assert router.outage_notice() == ""


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    "request_of",
    [
        RaceRequest(DECODER, "Once", 5, 0.9, 40, 0.95, 3),
        RaceRequest(DECODER, "A", 3, weights="int8"),
    ],
)
def test_race_is_the_same(request_of: RaceRequest):
    expected = without_times(race.race(request_of, never))
    assert without_times(router.race(request_of, never)) == expected
    assert len(expected) == request_of.max_new_tokens + 2


@pytest.mark.usefixtures("site")
def test_errors_are_the_same():
    with pytest.raises(OverLimit, match="512"):
        list(router.race(RaceRequest(DECODER, "a " * 600, 2), never))
    with pytest.raises(ValueError, match="no-such-model"):
        list(router.race(RaceRequest("no-such-model", "a", 2), never))
    with pytest.raises(OverLimit):
        router.record_pass(models.get(DECODER), [5] * (MAX_MAP_TOKENS + 1))
    for ids in ([10**6], [], ["5"]):
        with pytest.raises(ValueError, match="token_ids"):
            router.record_pass(models.get(DECODER), ids)
    assert router.outage_notice() == ""


# ---- what the server accepts, and when it stops


@pytest.mark.parametrize(
    ("content", "status"),
    [(b"x" * (MAX_REQUEST_BYTES + 1), 413), (b"[" * 60_000, 400), (b"[]", 400), (b"\xff", 400)],
)
def test_malformed_requests_are_rejected(address: str, content: bytes, status: int):
    assert httpx2.post(f"{address}/record", content=content).status_code == status
    assert httpx2.post(f"{address}/nothing", content=b"{}").status_code == 404


def test_stuck_computation_stops_the_heartbeats(address: str, monkeypatch: pytest.MonkeyPatch):
    over, elapsed = threading.Event(), [0.0]

    def stuck(*_: object) -> Iterator[Event]:
        over.wait(60)
        yield PhaseStarted("too late")

    monkeypatch.setattr(service, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(compute, "held_seconds", lambda: elapsed[0])
    monkeypatch.setitem(service.HANDLERS, "record", stuck)
    with httpx2.stream("POST", f"{address}/record", json={}) as answer:
        events = codec.decode(answer.iter_raw())
        assert next(events) is None
        elapsed[0] = STUCK_SECONDS + 1.0
        with pytest.raises(ServerUnavailable):
            list(events)
    over.set()


def test_server_computes_no_further_than_the_client_reads(
    address: str, monkeypatch: pytest.MonkeyPatch, one_slot: threading.BoundedSemaphore
):
    computed, over = list[int](), threading.Event()

    def large(*_: object) -> Iterator[Event]:
        try:
            for number in range(1_000):
                computed.append(number)
                yield PhaseStarted("x" * 1_000_000)
        finally:
            over.set()

    monkeypatch.setitem(service.HANDLERS, "race", large)
    with httpx2.stream("POST", f"{address}/race", json={}):
        before = -1
        while before != len(computed):
            before = len(computed)
            threading.Event().wait(0.3)
        assert 0 < len(computed) < 100
        assert httpx2.post(f"{address}/race", json={}).status_code == 503
    assert over.wait(60)
    wait_until(lambda: one_slot._value == 1, seconds=60)


def test_client_that_disconnects_stops_the_computation(
    address: str, monkeypatch: pytest.MonkeyPatch, one_slot: threading.BoundedSemaphore
):
    def endless(_: object, check_stop: service.CheckStop) -> Iterator[Event]:
        yield PhaseStarted("begun")
        while True:
            check_stop(0)
            threading.Event().wait(0.01)

    monkeypatch.setitem(service.HANDLERS, "race", endless)
    with httpx2.stream("POST", f"{address}/race", json={}) as answer:
        next(answer.iter_raw())
    wait_until(lambda: one_slot._value == 1, seconds=60)


@pytest.mark.usefixtures("site")
def test_visitor_can_stop_while_the_server_computes(
    monkeypatch: pytest.MonkeyPatch, one_slot: threading.BoundedSemaphore
):
    def silent(_: object, check_stop: service.CheckStop) -> Iterator[Event]:
        while True:
            check_stop(0)
            threading.Event().wait(0.01)
        yield PhaseStarted("never")

    monkeypatch.setattr(service, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setitem(service.HANDLERS, "race", silent)

    def stop(_: int) -> None:
        raise JobStopped

    with pytest.raises(JobStopped):
        list(router.race(REQUEST, stop))
    wait_until(lambda: one_slot._value == 1, seconds=60)


# ---- what the site does when the server fails


@pytest.mark.usefixtures("site")
def test_site_takes_over_from_a_busy_server(one_slot: threading.BoundedSemaphore):
    assert one_slot.acquire(blocking=False)
    check_recorded_pass()
    assert without_times(router.race(REQUEST, never)) == without_times(race.race(REQUEST, never))
    assert any(isinstance(event, TimedStep) for event in router.measure(QUESTION, never))
    assert router.outage_notice() == ""


def test_site_computes_without_its_server_and_shows_a_notice(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(SERVE_URL, f"http://127.0.0.1:{free_port()}")
    check_recorded_pass()
    assert router.outage_notice() != ""
    monkeypatch.setattr(client, "stream", None)  # the server isn't retried for a while
    assert len(list(router.race(REQUEST, never))) == 8


@pytest.mark.parametrize(
    ("chunks", "status"),
    [
        ([], 200),
        ([END], 200),
        ([b"x" * 10_000] * 1_000, 200),
        ([b"<html>"], 500),
    ],
)
def test_site_takes_over_after_a_malformed_response(
    monkeypatch: pytest.MonkeyPatch, chunks: list[bytes], status: int
):
    answer_with(monkeypatch, *chunks, status=status)
    check_recorded_pass()
    assert router.outage_notice() != ""


def test_server_killed_during_a_run(monkeypatch: pytest.MonkeyPatch):
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "serving.backend.service:app", f"--port={port}"]
    server = subprocess.Popen(
        [*command, "--log-level=critical"], cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/healthz")
        monkeypatch.setenv(SERVE_URL, f"http://127.0.0.1:{port}")
        events = router.race(RaceRequest(DECODER, "The next day is bright", 200), never)
        assert isinstance(next(events), RaceStarted)
        server.kill()
        with pytest.raises(ServerUnavailable):
            list(events)
    finally:
        server.kill()
        server.wait()
    assert router.outage_notice() != ""
    assert isinstance(list(router.race(REQUEST, never))[-1], RaceEnded)  # the visitor tries again


@pytest.mark.parametrize("rest", [[], [b"<html>\n"], [codec.encode_error(OSError("no file"))]])
def test_incomplete_response_ends_with_a_message(
    monkeypatch: pytest.MonkeyPatch, rest: list[bytes]
):
    answer_with(monkeypatch, codec.encode(RaceStarted("cpu")), *rest)
    job = BackgroundJob()
    job.work = lambda: list(router.race(REQUEST, never))  # type: ignore[method-assign]
    job.run()
    assert (job.state, job.error) == ("failed", router.BROKE_OFF)


@pytest.mark.usefixtures("site")
def test_measurement_is_the_same():
    received, expected = (
        list(measure(QUESTION, never)) for measure in (router.measure, measurement.measure)
    )
    assert [type(event) for event in received] == [type(event) for event in expected]
    assert received[0] == expected[0]
    steps, expected_steps = (
        [
            (e.repeat, e.name, e.step.token_id, e.step.flops)
            for e in events
            if isinstance(e, TimedStep)
        ]
        for events in (received, expected)
    )
    assert steps == expected_steps
    assert len(steps) == 2 * QUESTION.repeats * QUESTION.n_new
