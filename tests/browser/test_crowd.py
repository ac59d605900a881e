"""The crowd of `benchmarks.load`: what it reports is what a few visitors of it met."""

import socket

import pytest

from benchmarks import load
from benchmarks.browser import Memory, Site
from tests.helpers.coroutines import done


def crowd_of(url: str, visitors: int, seconds: float, browsers: int = 0) -> load.Crowd:
    """So many visitors and browsers, for so many seconds."""
    return done(load.crowd_of(url, visitors, browsers, seconds))


@pytest.mark.usefixtures("alone_in_line")
def test_a_small_crowd_reads_and_generates(site: Site):
    crowd = crowd_of(site.url, 2, 6)  # the second begins with a generation
    assert dict(crowd.errors) == {}
    assert len(crowd.texts) >= 1
    assert all(0 < seconds < load.LATEST_TEXT_SECONDS for seconds in crowd.texts)
    opened = [page for page, _ in crowd.seconds]
    assert "generate" in opened
    assert set(opened) <= {"home", "generate", *load.PAGES}
    assert f"texts generated to their end: {len(crowd.texts)} (median " in load.report(crowd)


def test_the_memory_is_looked_at_on_the_way(site: Site):
    looks = [Memory(100_000_000 + number, 30_000_000) for number in range(load.MEMORY_LOOKS)]
    given = iter(looks)
    crowd = done(load.crowd_of(site.url, 0, 0, 0.05, lambda: next(given)))
    assert crowd.memory == [(0, memory) for memory in looks]
    assert load.memory_table([(1234, looks[0])]).splitlines()[-1].split() == [
        "1,234", "100", "30", "70",
    ]  # fmt: skip


def test_a_crowd_that_finds_no_site_says_so():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    crowd = crowd_of(f"http://127.0.0.1:{port}", 3, 0.1, browsers=1)
    assert crowd.errors.total() == 4
    assert sum("in a browser" in error for error in crowd.errors) == 1
    assert crowd.seconds == crowd.in_browsers == []


@pytest.mark.parametrize(
    ("share", "value"), [(0.05, 1), (0.5, 3), (0.6, 3), (0.61, 4), (0.95, 5), (1.0, 5)]
)
def test_the_value_that_a_share_does_not_exceed(share: float, value: float):
    assert load.share_below([5, 1, 4, 2, 3], share) == value
