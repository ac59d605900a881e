"""Test liveness and readiness of the site."""

import threading
from collections.abc import Callable, Iterator

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from serving import compute, models, warmup
from serving.jobs import BackgroundJob, JobQueue
from tests.helpers.waiting import wait_until
from web import health

client = TestClient(Starlette(routes=health.routes()), client=("203.0.113.9", 4321))


@pytest.fixture(autouse=True)
def _no_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_LAB_WARMUP", "off")


@pytest.fixture
def warm_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., threading.Event]]:
    """Return a function that restarts the warm-up; loading ends when the returned event is set."""
    ends = threading.Event()

    def begin(outcome: Callable[[], list[str]]) -> threading.Event:
        monkeypatch.setattr(models, "load_preferred", lambda: (ends.wait(60), outcome())[1])
        return ends

    monkeypatch.setenv("ATTENTION_LAB_WARMUP", "on")
    monkeypatch.setattr(warmup, "AFTER_SECONDS", 0.0)
    monkeypatch.setattr(warmup, "_threads", [])
    monkeypatch.setattr(warmup, "_failed_models", None)
    monkeypatch.setattr(warmup, "_next_try", 0.0)
    yield begin
    ends.set()
    for thread in warmup._threads:
        thread.join()


def test_alive_while_models_load_and_ready_after(warm_up: Callable[..., threading.Event]):
    ends = warm_up(list)
    loading = client.get("/readyz")  # there are no visitors yet, so the probe starts loading
    assert (loading.status_code, loading.json()["ready"]) == (503, False)
    assert (client.get("/healthz").status_code, client.get("/healthz").text) == (200, "ok")
    ends.set()
    warmup._threads[0].join()
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()) == (200, {"ready": True})
    assert ready.headers["cache-control"] == "no-store"


def test_not_ready_without_an_expected_model(warm_up: Callable[..., threading.Event]):
    warm_up(lambda: ["bert-base", "gpt2"]).set()
    warmup.start()
    warmup._threads[0].join()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "bert-base and gpt2" in answer.json()["reason"]


def test_not_ready_while_a_pass_blocks_all_others(monkeypatch: pytest.MonkeyPatch):
    assert client.get("/readyz").status_code == 200
    monkeypatch.setattr(health, "STUCK_SECONDS", 0.0)
    with compute.slot():
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert client.get("/readyz").status_code == 200


class Deaf(BackgroundJob):
    """A job that ignores requests to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.runs, self.release = threading.Event(), threading.Event()

    def work(self) -> None:
        self.runs.set()
        self.release.wait(60)


def test_not_ready_while_a_stopped_job_continues(monkeypatch: pytest.MonkeyPatch):
    queue, job = JobQueue(name="tried"), Deaf()
    monkeypatch.setattr(health, "QUEUES", (queue,))
    queue.put(job)
    assert job.runs.wait(60)
    job.keep_alive()
    assert client.get("/readyz").status_code == 200
    job.stop()
    assert client.get("/readyz").status_code == 200  # the job gets some time to end
    monkeypatch.setattr(health, "STUCK_SECONDS", 0.0)
    answer = client.get("/readyz")
    job.release.set()
    assert answer.status_code == 503
    assert "tried" in answer.json()["reason"]


def test_failed_models_are_retried(
    warm_up: Callable[..., threading.Event], monkeypatch: pytest.MonkeyPatch
):
    outcomes = [["gpt2"], ["gpt2"], []]
    monkeypatch.setattr(warmup, "TRY_AGAIN_SECONDS", 0.0)
    warm_up(lambda: outcomes.pop(0)).set()
    warmup.start()
    warmup._threads[0].join()
    assert client.get("/readyz").status_code == 503
    wait_until(lambda: client.get("/readyz").status_code == 200, seconds=10, every=0.01)
    assert outcomes == []
