"""When the site is alive, and when it is ready for visitors."""

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
    """Lets the warm-up begin anew, with a loading of models that ends when the event is set."""
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
    loading = client.get("/readyz")  # nobody has visited: whoever asks starts the loading
    assert (loading.status_code, loading.json()["ready"]) == (503, False)
    assert (client.get("/healthz").status_code, client.get("/healthz").text) == (200, "ok")
    ends.set()
    warmup._threads[0].join()
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()) == (200, {"ready": True})
    assert ready.headers["cache-control"] == "no-store"


def test_not_ready_without_a_model_that_should_be_there(warm_up: Callable[..., threading.Event]):
    warm_up(lambda: ["bert-base", "gpt2"]).set()
    warmup.start()
    warmup._threads[0].join()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "bert-base and gpt2" in answer.json()["reason"]


def test_not_ready_while_one_pass_holds_all_others_up(monkeypatch: pytest.MonkeyPatch):
    assert client.get("/readyz").status_code == 200
    monkeypatch.setattr(health, "STUCK_SECONDS", 0.0)
    with compute.slot():
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert client.get("/readyz").status_code == 200


class Deaf(BackgroundJob):
    """A job that does not end when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.runs, self.release = threading.Event(), threading.Event()

    def work(self) -> None:
        self.runs.set()
        self.release.wait(60)


def test_not_ready_while_a_job_goes_on_that_was_stopped(monkeypatch: pytest.MonkeyPatch):
    queue, job = JobQueue(name="tried"), Deaf()
    monkeypatch.setattr(health, "QUEUES", (queue,))
    queue.put(job)
    assert job.runs.wait(60)
    job.keep_alive()
    assert client.get("/readyz").status_code == 200
    job.stop()
    assert client.get("/readyz").status_code == 200  # it has a while to end
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
