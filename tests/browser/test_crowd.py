"""Test the simulated visitors of `benchmarks.load`: they read, generate and report errors."""

import pytest

from benchmarks import load
from benchmarks.browser import Site, free_port
from tests.helpers.coroutines import run_coroutine


@pytest.mark.usefixtures("exclusive_generation")
def test_small_crowd_reads_and_generates(site: Site):
    crowd = run_coroutine(load.run_crowd(site.url, 2, 0, 6))  # the second one generates first
    assert dict(crowd.errors) == {}
    assert all(0 < seconds < load.LATEST_TEXT_SECONDS for seconds in crowd.texts)
    pages = {page for page, _ in crowd.seconds}
    assert "generate" in pages <= {"home", "generate", *load.PAGES}
    assert f"finished texts: {len(crowd.texts)} (median " in load.report(crowd)


def test_crowd_reports_a_missing_site():
    crowd = run_coroutine(load.run_crowd(f"http://127.0.0.1:{free_port()}", 3, 1, 0.1))
    assert crowd.errors.total() == 4
    assert sum("in a browser" in error for error in crowd.errors) == 1
