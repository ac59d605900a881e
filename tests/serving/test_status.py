"""What the three addresses answer, and to whom."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from serving import cache, compute, models, status, warmup
from serving.jobs import JobQueue, Work
from tests.helpers.counts import counted
from tests.helpers.until import until

PORT = 4321
SITE = f"http://127.0.0.1:{PORT}"


PROXY_HEADERS = (
    "X-Real-IP", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server",
    "Via", "CF-Connecting-IP", "CF-Ray", "True-Client-IP", "X-Client-IP", "Fly-Client-IP",
    "X-Envoy-External-Address", "X-Cluster-Client-IP", "Fastly-Client-IP", "X-Original-URL",
    "X-Original-Forwarded-For", "X-Azure-ClientIP", "X-Appengine-User-IP", "X-Amzn-Trace-Id",
    "CDN-Loop", "X-Request-ID",
)  # fmt: skip


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text(await socket.receive_text())
    await socket.close()


def fails(request: Request) -> Response:
    raise ZeroDivisionError(request.query_params["text"])


def page(_: Request) -> Response:
    return PlainTextResponse("a page")


APP = Starlette(
    routes=[
        *status.routes(),
        WebSocketRoute("/stream", echo),
        Route("/fails", fails),
        Route("/page", page),
        Route("/_stcore/metrics", page),
    ],
    middleware=[Middleware(status.Watched)],
)


def client(address: str = "127.0.0.1", base: str = SITE) -> TestClient:
    """A client that connects from this address."""
    return TestClient(APP, base, raise_server_exceptions=False, client=(address, PORT))


@pytest.fixture(autouse=True)
def _no_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_LAB_WARMUP", "off")
    monkeypatch.delenv(status.TOKEN_VARIABLE, raising=False)


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
    monkeypatch.setattr(warmup, "_failed", None)
    monkeypatch.setattr(warmup, "_next_try", 0.0)
    yield begin
    ends.set()
    for thread in warmup._threads:
        thread.join()


def test_alive_while_models_load_and_ready_after(warm_up: Callable[..., threading.Event]):
    ends = warm_up(list)
    loading = client().get("/readyz")  # nobody has visited: whoever asks starts the loading
    assert (loading.status_code, loading.json()) == (
        503,
        {"ready": False, "reason": "The first models are loading."},
    )
    assert (client().get("/healthz").status_code, client().get("/healthz").text) == (200, "ok")
    ends.set()
    warmup._threads[0].join()
    ready = client("203.0.113.9").get("/readyz")  # for everybody
    assert (ready.status_code, ready.json()) == (200, {"ready": True})
    assert ready.headers["cache-control"] == "no-store"


def test_not_ready_without_a_model_that_should_be_there(warm_up: Callable[..., threading.Event]):
    warm_up(lambda: ["bert-base", "gpt2"]).set()
    warmup.start()
    warmup._threads[0].join()
    answer = client().get("/readyz")
    reason = "bert-base and gpt2 could not be loaded; see the log."
    assert (answer.status_code, answer.json()["reason"]) == (503, reason)


def test_what_was_not_loaded_is_tried_again_for_whoever_asks(
    warm_up: Callable[..., threading.Event], monkeypatch: pytest.MonkeyPatch
):
    outcomes = [["gpt2"], ["gpt2"], []]
    monkeypatch.setattr(warmup, "TRY_AGAIN_SECONDS", 0.0)
    warm_up(lambda: outcomes.pop(0)).set()
    warmup.start()
    warmup._threads[0].join()
    assert client().get("/readyz").status_code == 503
    until(lambda: client().get("/readyz").status_code == 200, seconds=10, every=0.01)
    assert outcomes == []


def test_a_model_that_a_page_has_loaded_meanwhile_is_not_missed(
    warm_up: Callable[..., threading.Event], monkeypatch: pytest.MonkeyPatch
):
    warm_up(lambda: ["gpt2", "bert-base"]).set()
    warmup.start()
    warmup._threads[0].join()
    monkeypatch.setattr(models, "is_loaded", lambda name: name == "gpt2")
    reason = "bert-base could not be loaded; see the log."
    assert client().get("/readyz").json()["reason"] == reason


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_not_ready_after_a_warm_up_that_broke(warm_up: Callable[..., threading.Event]):
    def broken() -> list[str]:
        raise ZeroDivisionError

    warm_up(broken).set()
    warmup.start()
    warmup._threads[0].join()
    assert client().get("/readyz").json()["reason"] == "The warm-up failed; see the log."


def test_the_models_that_could_not_be_loaded_are_named(monkeypatch: pytest.MonkeyPatch):
    def get(name: str) -> None:
        if name == "the encoder":
            raise OSError(name)

    monkeypatch.setattr(models, "get", get)
    monkeypatch.setattr(models, "preferred", lambda kind: f"the {kind}")
    assert models.load_preferred() == ["the encoder"]
    monkeypatch.setattr(models, "preferred", lambda kind: None)  # there are none
    assert models.load_preferred() == []


def test_models_that_cannot_be_fetched_are_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(models, "preferred", lambda kind: None)
    monkeypatch.setenv("ATTENTION_LAB_PREFETCH", "no-such-model")
    models.load_preferred()
    assert "ATTENTION_LAB_PREFETCH: No model named 'no-such-model'" in caplog.text


def test_what_a_load_keeps_from_the_garbage_collector_is_looked_at_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
):
    class Knot:
        """It holds itself."""

    def load() -> None:
        with models._loading("a model", "model loaded"):
            pass

    knot = Knot()
    knot.self = knot  # type: ignore[attr-defined]
    load()
    alive = weakref.ref(knot)
    del knot
    gc.collect()
    assert alive() is not None
    load()
    assert alive() is None


def test_not_ready_while_one_pass_holds_all_others_up(monkeypatch: pytest.MonkeyPatch):
    assert client().get("/readyz").status_code == 200
    monkeypatch.setattr(status, "STUCK_SECONDS", 0.0)
    with compute.slot():
        answer = client().get("/readyz")
    assert answer.status_code == 503
    assert "One pass of a model" in answer.json()["reason"]
    assert client().get("/readyz").status_code == 200


class Deaf(Work):
    """A job that does not end when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.runs, self.release = threading.Event(), threading.Event()

    def work(self) -> None:
        self.runs.set()
        self.release.wait(60)


def test_not_ready_while_a_job_goes_on_that_was_stopped(monkeypatch: pytest.MonkeyPatch):
    queue, job = JobQueue(name="tried"), Deaf()
    monkeypatch.setattr(status, "QUEUES", (queue,))
    queue.put(job)
    assert job.runs.wait(60)
    job.watch()
    assert client().get("/readyz").status_code == 200
    job.stop()
    assert client().get("/readyz").status_code == 200  # it has a while to end
    monkeypatch.setattr(status, "STUCK_SECONDS", 0.0)
    answer = client().get("/readyz")
    job.release.set()
    assert (answer.status_code, answer.json()["reason"]) == (
        503,
        "The queue of tried does not move.",
    )


class EndsItsThread(Work):
    """A job that ends its worker: no error that a queue could go on after."""

    def work(self) -> None:
        raise SystemExit


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_not_ready_when_jobs_wait_for_a_worker_that_died(monkeypatch: pytest.MonkeyPatch):
    queue = JobQueue(name="tried")
    monkeypatch.setattr(status, "QUEUES", (queue,))
    queue.put(EndsItsThread())
    assert queue._worker is not None
    queue._worker.join(60)
    assert client().get("/readyz").status_code == 200  # nobody waits
    queue._waiting.append(Deaf())  # it waited already; with the next one a new worker would begin
    assert queue.length == 1
    assert client().get("/readyz").status_code == 503


@pytest.mark.parametrize(
    ("address", "base", "headers"),
    [
        ("203.0.113.9", SITE, {}),
        ("10.0.0.1", SITE, {}),
        ("203.0.113.9", SITE, {"x-forwarded-for": "127.0.0.1"}),
        # uvicorn puts what a proxy says in the place of the address that it came from
        ("127.0.0.1", SITE, {"x-forwarded-for": "127.0.0.1"}),
        ("127.0.0.1", SITE, {"forwarded": "for=127.0.0.1"}),
        *(("127.0.0.1", SITE, {name: "127.0.0.1"}) for name in PROXY_HEADERS),
        # a proxy on the same machine that says nothing of itself, and rebound names
        ("127.0.0.1", "http://lab.example.org", {}),
        ("127.0.0.1", SITE, {"host": "[::1"}),
        ("127.0.0.1", SITE, {"host": ""}),
        ("testclient", SITE, {}),
        ("203.0.113.9", SITE, {"authorization": "Bearer "}),  # no token is set, none is right
    ],
)
def test_the_numbers_are_hidden_from_strangers(address, base, headers):
    answer = client(address, base).get("/metrics", headers=headers)
    assert (answer.status_code, answer.text) == (404, "Not Found")


@pytest.mark.parametrize(("version", "code"), [("1.0", 404), ("1.1", 200)])
def test_a_proxy_that_adds_no_header_speaks_an_old_http(version: str, code: int):
    """As nginx with `proxy_pass` alone: by the name and from the address of this machine."""

    async def spoken(scope: Scope, receive: Receive, send: Send) -> None:
        await APP({**scope, "http_version": version}, receive, send)

    answer = TestClient(spoken, SITE, client=("127.0.0.1", PORT)).get("/metrics")
    assert answer.status_code == code


@pytest.mark.parametrize(
    ("address", "base"),
    [("127.0.0.1", SITE), ("::1", "http://[::1]:4321"), ("::ffff:127.0.0.1", "http://localhost")],
)
def test_the_machine_itself_reads_the_numbers(address, base):
    answer = client(address, base).get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "process_resident_memory_bytes" in answer.text


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("Bearer s3cret-é", 200),
        ("bearer s3cret-é", 200),
        ("Bearer s3cret", 404),
        ("Bearer s3cret-éé", 404),
        ("Basic s3cret-é", 404),
        ("s3cret-é", 404),
        ("", 404),
    ],
)
@pytest.mark.parametrize("address", ["127.0.0.1", "203.0.113.9"])
def test_with_a_token_only_whoever_sends_it_reads_the_numbers(
    monkeypatch: pytest.MonkeyPatch, given: str, code: int, address: str
):
    monkeypatch.setenv(status.TOKEN_VARIABLE, "s3cret-é\n")  # as a file of secrets may end
    headers = {"authorization": given.encode()}
    assert client(address).get("/metrics", headers=headers).status_code == code


def test_visits_and_errors_of_requests_are_counted():
    def visits() -> tuple[float, float]:
        return counted("visits_total"), counted("open_visits")

    errors = {"kind": "ZeroDivisionError", "ended": "request"}
    total, before = visits()[0], counted("errors_total", **errors)
    with client().websocket_connect("/stream") as socket:
        assert visits() == (total + 1, 1)
        socket.send_text("hello")
        assert socket.receive_text() == "hello"
    assert client().get("/page").text == "a page"
    assert visits() == (total + 1, 0)
    assert client().get("/fails?text=secret").status_code == 500
    assert counted("errors_total", **errors) == before + 1


def test_what_is_kept_and_who_waits_is_read_when_it_is_asked_for():
    @cache.cached(key=lambda n: n, size=lambda value: len(value))
    def filled(n: int) -> bytes:
        return bytes(n)

    filled(123)
    filled(77)
    assert filled.n_cached == 2
    assert counted("cache_bytes", function=f"{__name__}.{filled.__qualname__}") == 200
    with compute.slot():
        assert counted("compute_requests") == 1
    assert counted("compute_requests") == 0
    assert counted("models_loaded") == models.loaded.n_cached


def test_streamlit_s_own_numbers_are_withheld_likewise():
    assert client().get("/_stcore/metrics").text == "a page"
    assert client("203.0.113.9").get("/_stcore/metrics").status_code == 404
    assert client(base="http://lab.example.org").get("/_stcore/metrics").status_code == 404
