"""Test metrics: labels are only page and queue names, and counts are exact across threads."""

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from serving import metrics
from serving.jobs import BackgroundJob, JobQueue
from serving.step_times import StepTime
from tests.helpers.jobs import finish
from tests.helpers.metrics import counter_value

HOSTILE = 'x"} 1\n<script>alert(1)</script>'


class FailingJob(BackgroundJob):
    """A job that fails with visitor text in its error."""

    def work(self) -> None:
        raise ZeroDivisionError(HOSTILE)


@pytest.fixture(autouse=True)
def _pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_LAB_WARMUP", "off")
    monkeypatch.setattr(metrics, "_pages", frozenset({"home", "heads", "calculator"}))


def test_no_text_becomes_a_label():
    before = counter_value("page_run_seconds_count", page="other")
    with metrics.track_page_run(HOSTILE):
        pass
    finish_failing(JobQueue(name="hostile"))
    text = generate_latest(metrics.REGISTRY).decode()
    assert counter_value("page_run_seconds_count", page="other") == before + 1
    assert "alert" not in text
    # the Prometheus parser raises an error if the text is invalid
    list(text_string_to_metric_families(text))


def finish_failing(queue: JobQueue) -> FailingJob:
    job = FailingJob()
    queue.put(job)
    return finish(job)


def test_job_is_counted_with_outcome_error_and_wait():
    queue = JobQueue(name="of failing jobs")
    errors = {"kind": "ZeroDivisionError", "ended": "job"}
    before = counter_value("errors_total", **errors)
    assert finish_failing(queue).state == "failed"
    assert counter_value("errors_total", **errors) == before + 1
    assert counter_value("jobs_total", queue="of failing jobs", state="failed") == 1
    assert counter_value("waiting_seconds_count", queue="of failing jobs") == 1


def test_tokens_and_seconds_are_counted_by_cache_use():
    names = ("generated_tokens_total", "generation_seconds_total")
    before = {
        (name, cache): counter_value(name, cache=cache)
        for name in names
        for cache in ("with", "without")
    }
    for seconds, length in ((0.25, 11), (0.5, 12), (4.0, 0)):
        StepTime("decode", 7, -1.0, seconds, 1, 13, length, 17).count()
    added = {key: counter_value(key[0], cache=key[1]) - number for key, number in before.items()}
    assert added == pytest.approx(
        {
            ("generated_tokens_total", "with"): 2,
            ("generation_seconds_total", "with"): 0.75,
            ("generated_tokens_total", "without"): 1,
            ("generation_seconds_total", "without"): 4.0,
        }
    )
    list(metrics.count_steps([StepTime("decode", 7, -1.0, 0.125, 1, 13, 0, 17)]))
    assert counter_value(names[0], cache="with") == before[names[0], "with"] + 3
