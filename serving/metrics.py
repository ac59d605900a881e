"""What is counted for whoever runs the site, in the format of Prometheus.

What happens is counted here when it happens; `web/metrics_endpoint.py` reads the current state,
such as the bytes of a cache, at the moment of a request. A label holds only names that the code
chose: a page that is not in the table of contents is "other", so no visitor's text becomes a label.
Source: https://prometheus.io/docs/practices/naming/
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from serving import log


class _Step(Protocol):
    @property
    def seconds(self) -> float: ...


Timed = TypeVar("Timed", bound=_Step)

PREFIX = "attention_lab"
HOME, OTHER = "home", "other"

disable_created_metrics()  # type: ignore[no-untyped-call] # a second number beside each, which nobody asks for
REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)  # memory, processor seconds and open files of this process

VISITS = Counter("visits", "Sessions that a browser opened.", namespace=PREFIX, registry=REGISTRY)
OPEN_VISITS = Gauge(
    "open_visits", "Sessions that are open now.", namespace=PREFIX, registry=REGISTRY
)
PAGE_SECONDS = Histogram(
    "page_run_seconds",
    "Seconds of one run of a page's script; repaints of a part of a page are not among them.",
    ["page"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    namespace=PREFIX,
    registry=REGISTRY,
)
WAITING_SECONDS = Histogram(
    "waiting_seconds",
    "Seconds that a job waited in its queue, or a computation for its slot.",
    ["queue"],
    buckets=(0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1200),
    namespace=PREFIX,
    registry=REGISTRY,
)
JOBS = Counter(
    "jobs",
    "Jobs that ended, by their outcome.",
    ["queue", "state"],
    namespace=PREFIX,
    registry=REGISTRY,
)
TOKENS = Counter(
    "generated_tokens",
    "Tokens that models generated, with a KV cache or without.",
    ["cache"],
    namespace=PREFIX,
    registry=REGISTRY,
)
TOKEN_SECONDS = Counter(
    "generation_seconds",
    "Seconds of the model calls for them: tokens a second are the one rate over the other.",
    ["cache"],
    namespace=PREFIX,
    registry=REGISTRY,
)
ERRORS = Counter(
    "errors",
    "Errors by their class, and what they ended.",
    ["kind", "ended"],
    namespace=PREFIX,
    registry=REGISTRY,
)

_pages: frozenset[str] = frozenset()


def know_pages(names: Iterable[str]) -> None:
    """Take these as the names of all pages: their addresses without slashes, and "home"."""
    global _pages
    _pages = frozenset(names)


def page_name(address: str) -> str:
    """The label of the page at an address without slashes: "other" if there is no such page."""
    page = address or HOME
    return page if page in _pages else OTHER


@contextmanager
def page_run(address: str) -> Iterator[None]:
    """Count and time what is inside as one run of the page at this address."""
    page, begin = page_name(address), time.perf_counter()
    failed: dict[str, str] = {}
    try:
        yield
    except Exception as error:  # one that ends the page; `error_in_script` counts it
        failed = {"kind": type(error).__name__}
        raise
    finally:
        seconds = time.perf_counter() - begin
        PAGE_SECONDS.labels(page).observe(seconds)
        log.event("page run", page=page, milliseconds=milliseconds(seconds), **failed)


@contextmanager
def visit() -> Iterator[None]:
    """Count what is inside as one session of a browser."""
    begin = time.perf_counter()
    VISITS.inc()
    OPEN_VISITS.inc()
    log.event("visit begins")
    try:
        yield
    finally:
        OPEN_VISITS.dec()
        log.event("visit ends", milliseconds=milliseconds(time.perf_counter() - begin))


def waited(queue: str, seconds: float) -> None:
    """Count the seconds that somebody waited in a queue that the code named."""
    WAITING_SECONDS.labels(queue).observe(seconds)


def job_ended(queue: str, state: str, seconds: float) -> None:
    """Count a job that ran for so long and ended in this state."""
    JOBS.labels(queue, state).inc()
    log.event("job ends", queue=queue, state=state, milliseconds=milliseconds(seconds))


def generated(seconds: float, *, cached: bool) -> None:
    """Count one generated token; seconds: of the model call alone."""
    cache = "with" if cached else "without"
    TOKENS.labels(cache).inc()
    TOKEN_SECONDS.labels(cache).inc(seconds)


def counted(steps: Iterable[Timed]) -> Iterator[Timed]:
    """The steps of a generation with a cache, each counted as one generated token."""
    for step in steps:
        generated(step.seconds, cached=True)
        yield step


def error(failure: BaseException, ended: str) -> None:
    """Count an error by its class; ended: what it ended, a constant of the code."""
    ERRORS.labels(type(failure).__name__, ended).inc()
    log.event("error", "error", ended=ended, **log.about(failure))


def error_in_script(failure: Exception) -> None:
    """Count an error that ended a page, a part of it or a widget's callback."""
    error(failure, "page")


def milliseconds(seconds: float) -> float:
    """Seconds as the log writes them."""
    return round(seconds * 1000, 1)
