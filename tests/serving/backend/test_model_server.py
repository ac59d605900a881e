"""The model server and the site that asks it: equal answers, broken streams, one that is gone."""

import contextlib
import math
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import torch
import uvicorn
from streamlit.testing.v1 import AppTest
from torch.testing import assert_close

from attention_core import stream
from serving import compute, models, race, recording, runs
from serving.backend import asks, choice, service
from serving.backend.frames import ALIVE, END, Broken, Frame, packed, unpacked
from serving.backend.remote import ModelServer, Told, Unavailable
from serving.jobs import Stopped
from serving.limits import MAX_MAP_TOKENS, STUCK_SECONDS, OverLimit
from serving.race import Begun, Ended, RaceStep, Request
from serving.timing import measurement
from serving.timing.measurement import Timed
from serving.timing.subjects import CORE_CACHED, CORE_UNCACHED, TINY, Question
from tests.helpers.apptest import FRAME, open_page
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.until import until

ROOT = Path(__file__).resolve().parents[3]
TEXT = "The animal didn't cross the street"
QUESTION = Question(TINY, "The next day is bright", 16, 2, (CORE_CACHED, CORE_UNCACHED))
REQUEST = Request(DECODER, "The next day is bright", 6)


def never(_: int) -> None:
    """Nobody stops."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(app: object) -> Iterator[str]:
    """The address of an app that runs in a thread."""
    port = free_port()
    # the loggers of this process stay as they are: other tests listen to them
    config = uvicorn.Config(app, port=port, log_config=None, access_log=False)  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_for(f"http://127.0.0.1:{port}/healthz")
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(30)


def wait_for(address: str) -> None:
    for _ in range(600):
        with contextlib.suppress(httpx2.HTTPError):
            httpx2.get(address)
            return
        threading.Event().wait(0.1)
    raise AssertionError("the server does not listen")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running(service.app) as address:
        yield address


@pytest.fixture(autouse=True)
def _no_server_was_silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(choice, "_silent_until", 0.0)
    yield
    choice._server_at.cache_clear()


@pytest.fixture
def asked(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The site asks the server."""
    monkeypatch.setenv(choice.VARIABLE, address + "/")


def without_times(events: Iterator[race.Event]) -> list[tuple[object, ...]]:
    return [
        (event.cached.token_id, event.uncached.token_id, event.cache_size, event.cached.flops)
        if isinstance(event, RaceStep)
        else (event,)
        for event in events
    ]


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_a_recorded_pass_is_the_same(name: str):
    model = models.get(name)
    ids = model.tokenizer.encode(TEXT).ids
    theirs, ours = choice.record(model, ids), recording.record(model, ids)
    assert theirs.scale == ours.scale
    assert_close(vars(theirs.tensors), vars(ours.tensors), rtol=0, atol=0)
    assert choice.trouble() == ""


@pytest.mark.usefixtures("asked")
def test_a_server_without_the_weights_leaves_the_work_to_the_site(monkeypatch: pytest.MonkeyPatch):
    def missing(*_: object) -> None:
        raise LookupError("The weights are not on this machine")

    monkeypatch.setitem(asks.ANSWERS, "record", missing)
    monkeypatch.setitem(asks.ANSWERS, "race", missing)
    monkeypatch.setitem(asks.ANSWERS, "measure", missing)
    model = models.get(ENCODER)
    ids = model.tokenizer.encode(TEXT).ids
    theirs, ours = choice.record(model, ids), recording.record(model, ids)
    assert_close(vars(theirs.tensors), vars(ours.tensors), rtol=0, atol=0)
    expected = without_times(race.race(REQUEST, never))
    assert without_times(choice.race(REQUEST, never)) == expected
    assert any(isinstance(event, Timed) for event in choice.measure(QUESTION, never))
    assert choice.trouble() == ""  # it does answer


@pytest.mark.usefixtures("asked")
def test_a_page_s_run_comes_from_the_server(monkeypatch: pytest.MonkeyPatch):
    model, asked = models.get(ENCODER), []
    record = ModelServer.record
    monkeypatch.setattr(ModelServer, "record", lambda *of: (asked.append(of[1:]), record(*of))[1])
    with runs.forward.disabled():
        run = runs.run(ENCODER, TEXT)
    assert asked == [(ENCODER, run.tokens.ids)]
    ids = torch.tensor([run.tokens.ids])
    assert_close(run.tensors.weights[2], model.core(ids, record=True).records[2].weights[0])


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    "request_of",
    [
        REQUEST,
        Request(DECODER, "Once", 5, 0.9, 40, 0.95, 3),
        Request(DECODER, "A", 3, weights="int8"),
    ],
)
def test_a_race_is_the_same(request_of: Request):
    ours = without_times(race.race(request_of, never))
    assert without_times(choice.race(request_of, never)) == ours
    assert len(ours) == request_of.max_new_tokens + 2


@pytest.mark.usefixtures("asked")
def test_a_measurement_is_told_from_there():
    events = list(choice.measure(QUESTION, never))
    assert [type(e).__name__ for e in events[:5]] == [
        "Described", "Doing", "WarmedUp", "WarmedUp", "Doing",
    ]  # fmt: skip
    expected = list(measurement.measure(QUESTION, never))
    assert events[0] == expected[0]
    ours, theirs = (
        [(e.repeat, e.name, e.step.token_id, e.step.flops) for e in told if isinstance(e, Timed)]
        for told in (expected, events)
    )
    assert theirs == ours
    assert len(ours) == 2 * QUESTION.repeats * QUESTION.n_new
    last = events[-1]
    assert isinstance(last, Timed)
    assert 0 < (last.largest_difference or 0) < 1e-4


def test_half_a_measurement_is_not_continued_elsewhere():
    whole = [packed(frame) for frame in asks.answer_measure(vars(QUESTION), never)]
    for count, error in ((0, Unavailable), (9, ValueError)):
        answer = httpx2.Response(200, content=b"".join(whole[:count]))
        client = httpx2.Client(transport=httpx2.MockTransport(lambda _, answer=answer: answer))
        with pytest.raises(error, match="Press Measure" if count else None):
            list(ModelServer("http://models", client).measure(QUESTION, never))


@pytest.mark.usefixtures("asked")
def test_errors_are_what_they_are_here():
    with pytest.raises(OverLimit, match="over the limit of 512 for a prompt"):
        list(choice.race(Request(DECODER, "a " * 600, 2), never))
    with pytest.raises(ValueError, match="no-such-model"):
        list(choice.race(Request("no-such-model", "a", 2), never))
    too_many = [5] * (MAX_MAP_TOKENS + 1)
    with pytest.raises(OverLimit, match="1 over the limit"):
        choice.record(models.get(DECODER), too_many)
    with pytest.raises(ValueError, match="token_ids must be ids"):
        choice.record(models.get(DECODER), [10**6])
    assert choice.trouble() == ""  # the server did answer


@pytest.mark.parametrize(
    ("content", "status"),
    [(b"x" * 70_000, 413), (b"[" * 60_000, 400), (b"[]", 400), (b"\xff", 400)],
)
def test_what_is_no_question_is_refused(address: str, content: bytes, status: int):
    assert httpx2.post(f"{address}/record", content=content).status_code == status
    assert httpx2.post(f"{address}/nothing", content=b"{}").status_code == 404


def test_no_more_answers_at_once_than_the_limit(address: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(service, "_open", threading.BoundedSemaphore(1))
    began, go_on = threading.Event(), threading.Event()

    def slow(*_: object) -> Iterator[Frame]:
        began.set()
        go_on.wait(60)
        yield Frame("done")

    monkeypatch.setitem(asks.ANSWERS, "record", slow)
    with httpx2.stream("POST", f"{address}/record", json={}) as first:
        assert began.wait(60)
        assert httpx2.post(f"{address}/race", json={}).status_code == 503
        go_on.set()
        assert first.read().endswith(packed(Frame(END)))


@pytest.mark.usefixtures("asked")
def test_what_a_busy_server_has_no_room_for_is_done_here(monkeypatch: pytest.MonkeyPatch):
    """It is there: nobody is told that it is silent, and the next question is asked of it again."""
    model = models.get("gpt2-novels")
    monkeypatch.setattr(service, "_open", threading.BoundedSemaphore(1))
    assert service._open.acquire(blocking=False)
    assert choice.record(model, (5, 6, 7)).tensors.weights.shape[2:] == (3, 3)
    asks_for = Request(model="gpt2-novels", prompt="The old sea", max_new_tokens=2)
    assert isinstance(list(choice.race(asks_for, never))[-1], Ended)
    assert choice.trouble() == ""
    service._open.release()
    answered = list[object]()
    ask = ModelServer.record
    monkeypatch.setattr(
        ModelServer, "record", lambda *question: answered.append(ask(*question)) or answered[-1]
    )
    assert choice.record(model, (5, 6, 7)).tensors.weights.shape[2:] == (3, 3)
    assert len(answered) == 1


def test_a_server_whose_pass_is_stuck_says_no_longer_that_it_is_there(
    address: str, monkeypatch: pytest.MonkeyPatch
):
    over, held = threading.Event(), [0.0]

    def stuck(*_: object) -> Iterator[Frame]:
        over.wait(60)
        yield Frame("too late")

    monkeypatch.setattr(service, "ALIVE_SECONDS", 0.05)
    monkeypatch.setattr(compute, "held_seconds", lambda: held[0])
    monkeypatch.setitem(asks.ANSWERS, "record", stuck)
    with httpx2.stream("POST", f"{address}/record", json={}) as answer:
        frames = unpacked(answer.iter_bytes())
        assert next(frames).kind == ALIVE
        held[0] = STUCK_SECONDS + 1.0
        with pytest.raises(Broken):
            list(frames)
    over.set()


@pytest.mark.parametrize(("ask", "is_a_job"), [("record", False), ("race", True)])
def test_only_what_a_page_waits_for_has_the_priority_of_a_page(
    address: str, monkeypatch: pytest.MonkeyPatch, ask: str, is_a_job: bool
):
    def rank(*_: object) -> Iterator[Frame]:
        yield Frame(str(compute._thread.is_background))

    monkeypatch.setitem(asks.ANSWERS, ask, rank)
    answer = httpx2.post(f"{address}/{ask}", json={})
    assert next(unpacked(iter([answer.content]))).kind == str(is_a_job)


def test_an_address_that_is_none_is_no_answer():
    with pytest.raises(Unavailable):
        ModelServer("http://models:86O0").record("gpt2-novels", (5, 6))


def test_an_answer_that_nobody_reads_does_not_pile_up(
    address: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(service, "_open", threading.BoundedSemaphore(1))
    made, over = list[int](), threading.Event()

    def large(_: object, check_stop: asks.CheckStop) -> Iterator[Frame]:
        try:
            for number in range(1_000):
                made.append(number)
                yield Frame("more", tensors={"x": torch.zeros(1_000_000)})
        finally:
            over.set()

    monkeypatch.setitem(asks.ANSWERS, "race", large)
    with httpx2.stream("POST", f"{address}/race", json={}):
        before = -1
        while before != len(made):  # until it has stopped for want of a reader
            before = len(made)
            threading.Event().wait(1.0)
        assert 0 < len(made) < 100
        assert httpx2.post(f"{address}/race", json={}).status_code == 503
    assert over.wait(60)
    until(lambda: service._open._value == 1, seconds=60)


def test_who_goes_away_stops_the_work(address: str, monkeypatch: pytest.MonkeyPatch):
    over = threading.Event()

    def endless(_: object, check_stop: asks.CheckStop) -> Iterator[Frame]:
        try:
            while True:
                check_stop(0)
                threading.Event().wait(0.01)
                yield Frame("more")
        finally:
            over.set()

    monkeypatch.setitem(asks.ANSWERS, "race", endless)
    with httpx2.stream("POST", f"{address}/race", json={}) as answer:
        next(answer.iter_bytes())
    assert over.wait(60)


@pytest.mark.usefixtures("asked")
def test_a_visitor_who_stops_is_heard_while_the_server_works(monkeypatch: pytest.MonkeyPatch):
    def silent(_: object, check_stop: asks.CheckStop) -> Iterator[Frame]:
        while True:
            check_stop(0)
            threading.Event().wait(0.01)
            if False:
                yield Frame("never")

    monkeypatch.setattr(service, "ALIVE_SECONDS", 0.05)
    monkeypatch.setitem(asks.ANSWERS, "race", silent)

    def stop(_: int) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        list(choice.race(REQUEST, stop))


# ---- servers that fail


def test_every_page_says_that_the_server_is_silent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ATTENTION_LAB_WARMUP", "off")
    site = open_page(
        AppTest.from_file(FRAME, default_timeout=60), "pages/kv_cache/calculator/page.py"
    )
    assert not site.warning
    monkeypatch.setattr(choice, "_silent_until", math.inf)
    [warning] = site.run().warning
    assert "does not answer" in warning.value


def test_without_a_server_everything_runs_here(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(choice.VARIABLE, f"http://127.0.0.1:{free_port()}")
    model = models.get(DECODER)
    ids = model.tokenizer.encode(TEXT).ids
    assert_close(
        vars(choice.record(model, ids).tensors), vars(recording.record(model, ids).tensors)
    )
    assert "does not answer" in choice.trouble()
    assert choice._server() is None  # nobody waits for it again for a while
    assert len(list(choice.race(REQUEST, never))) == 8


def test_a_server_that_is_killed_in_the_middle(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    port = free_port()
    command = ["uvicorn", "serving.backend.service:app", "--port", str(port)]
    server = subprocess.Popen(
        [sys.executable, "-m", *command, "--log-level", "critical"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/healthz")
        monkeypatch.setenv(choice.VARIABLE, f"http://127.0.0.1:{port}")
        request = Request(DECODER, "The next day is bright", 16)
        told = []
        for event in choice.race(request, never):
            told.append(event)
            if len(told) == 4:
                server.kill()
                server.wait()
    finally:
        server.kill()
    model = models.get(DECODER)
    prompt = model.tokenizer.encode(request.prompt).ids
    cache = model.core.new_cache(1, len(prompt) + 15)
    expected = list(stream(model.core, prompt, max_new_tokens=16, cache=cache))
    steps = [event for event in told if isinstance(event, RaceStep)]
    for lane in ("cached", "uncached"):
        assert [getattr(s, lane).token_id for s in steps] == [s.token_id for s in expected]
    assert [s.cached.n_keys for s in steps] == [s.n_keys for s in expected]
    assert isinstance(told[-1], Ended)
    assert len([event for event in told if isinstance(event, Begun)]) == 2
    assert "does not answer" in caplog.text


def test_a_second_server_tells_the_rest():
    """One address, two servers behind it: the first breaks off after some frames."""
    frames = [packed(frame) for frame in asks.answer_race(vars(REQUEST), never)]
    answers = [b"".join(frames[:4]), b"".join([*frames, packed(Frame(END))])]

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=answers.pop(0))

    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    told = without_times(ModelServer("http://models", client).race(REQUEST, never, Told()))
    expected = without_times(race.race(REQUEST, never))
    assert told == [*expected[:4], expected[0], *expected[4:]]  # it says again where it runs


@pytest.mark.parametrize("content", [b"", b"<html>", packed(Frame("other")), packed(Frame(END))])
def test_an_answer_that_is_none_is_no_answer(content: bytes):
    answer = httpx2.Response(200, content=content)
    client = httpx2.Client(transport=httpx2.MockTransport(lambda _: answer))
    server = ModelServer("http://models", client)
    with pytest.raises(Unavailable):
        list(server.race(REQUEST, never, Told()))
    with pytest.raises(Unavailable):
        server.record(DECODER, (1, 2))


def test_another_text_is_not_glued_to_the_first():
    told = Told()
    steps = [event for event in race.race(REQUEST, never) if isinstance(event, RaceStep)]
    assert list(told.rest(iter(steps[:3]))) == steps[:3]
    with pytest.raises(ValueError, match="writes another text"):
        list(told.rest(iter([steps[0], steps[4]])))
