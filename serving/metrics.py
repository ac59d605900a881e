"""Metrics for the operator, in Prometheus format.

Events are counted here when they happen. `web/metrics_endpoint.py` reads the current state, such as
the bytes of a cache, when /metrics is requested. Labels only contain names from the code: a page
that isn't in the table of contents is "other", so a visitor's text never becomes a label.
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

disable_created_metrics()  # type: ignore[no-untyped-call] # we don't need creation times
REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)  # memory, CPU seconds and open files of this process

VISITS = Counter("visits", "Browser sessions.", namespace=PREFIX, registry=REGISTRY)
OPEN_VISITS = Gauge("open_visits", "Open browser sessions.", namespace=PREFIX, registry=REGISTRY)
PAGE_SECONDS = Histogram(
    "page_run_seconds",
    "Duration of a page run in seconds, not counting reruns of fragments.",
    ["page"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    namespace=PREFIX,
    registry=REGISTRY,
)
WAITING_SECONDS = Histogram(
    "waiting_seconds",
    "Seconds that jobs waited in a queue, or computations for a slot.",
    ["queue"],
    buckets=(0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1200),
    namespace=PREFIX,
    registry=REGISTRY,
)
JOBS = Counter(
    "jobs",
    "Finished jobs by outcome.",
    ["queue", "state"],
    namespace=PREFIX,
    registry=REGISTRY,
)
TOKENS = Counter(
    "generated_tokens",
    "Generated tokens, with or without a KV cache.",
    ["cache"],
    namespace=PREFIX,
    registry=REGISTRY,
)
TOKEN_SECONDS = Counter(
    "generation_seconds",
    "Seconds of model calls. For tokens per second, divide the rate of tokens by this rate.",
    ["cache"],
    namespace=PREFIX,
    registry=REGISTRY,
)
ERRORS = Counter(
    "errors",
    "Errors by class, and what they interrupted.",
    ["kind", "ended"],
    namespace=PREFIX,
    registry=REGISTRY,
)

_pages: frozenset[str] = frozenset()


def register_pages(names: Iterable[str]) -> None:
    """Set the names of all pages: their addresses without slashes, and "home"."""
    global _pages
    _pages = frozenset(names)


def page_name(address: str) -> str:
    """The label for a page's address (without slashes); "other" for an unknown page."""
    page = address or HOME
    return page if page in _pages else OTHER


@contextmanager
def track_page_run(address: str) -> Iterator[None]:
    """Count and time the `with` block as a run of the page at this address."""
    page, begin = page_name(address), time.perf_counter()
    failed: dict[str, str] = {}
    try:
        yield
    except Exception as error:  # `count_script_error` counts it
        failed = {"kind": type(error).__name__}
        raise
    finally:
        seconds = time.perf_counter() - begin
        PAGE_SECONDS.labels(page).observe(seconds)
        log.event("page run", page=page, milliseconds=milliseconds(seconds), **failed)


@contextmanager
def track_visit() -> Iterator[None]:
    """Count the `with` block as one browser session."""
    begin = time.perf_counter()
    VISITS.inc()
    OPEN_VISITS.inc()
    log.event("visit begins")
    try:
        yield
    finally:
        OPEN_VISITS.dec()
        log.event("visit ends", milliseconds=milliseconds(time.perf_counter() - begin))


def observe_wait(queue: str, seconds: float) -> None:
    """Record the seconds that a job or computation waited; queue: a name from the code."""
    WAITING_SECONDS.labels(queue).observe(seconds)


def count_job(queue: str, state: str, seconds: float) -> None:
    """Count a finished job by its final state, and log its duration."""
    JOBS.labels(queue, state).inc()
    log.event("job ends", queue=queue, state=state, milliseconds=milliseconds(seconds))


def count_token(seconds: float, *, cached: bool) -> None:
    """Count one generated token; seconds: duration of the model call alone."""
    cache = "with" if cached else "without"
    TOKENS.labels(cache).inc()
    TOKEN_SECONDS.labels(cache).inc(seconds)


def count_steps(steps: Iterable[Timed]) -> Iterator[Timed]:
    """Yield the steps of a generation with a cache, counting each as one generated token."""
    for step in steps:
        count_token(step.seconds, cached=True)
        yield step


def count_error(failure: BaseException, ended: str) -> None:
    """Count an error by its class; ended: what it interrupted, a name from the code."""
    ERRORS.labels(type(failure).__name__, ended).inc()
    log.event("error", "error", ended=ended, **log.describe_error(failure))


def count_script_error(failure: Exception) -> None:
    """Count an error that ended a page run, a fragment or a widget's callback."""
    count_error(failure, "page")


def milliseconds(seconds: float) -> float:
    """Convert seconds to the milliseconds in log lines."""
    return round(seconds * 1000, 1)
