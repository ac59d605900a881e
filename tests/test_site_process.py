"""The site as a process of its own: a storm of messages, and a kill in the middle of its work."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from benchmarks.browser import Server, metric
from benchmarks.load import Tab
from pretrained import sealed_folder
from serving.limits import BURST_OF_MESSAGES
from tests.helpers.until import until as until_it_is

pytestmark = pytest.mark.usefixtures("bundled_weights")

STORM = 2_000  # messages
MB = 1_000_000


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of whoever runs the site, and the folder of its temporary files."""
    return tmp_path_factory.mktemp("home")


def started(home: Path, log: Path, **environment: str) -> Server:
    """A site that has only this home to write to, beside the cache of the converted weights."""
    places = {
        **dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME"), str(home)),
        "ATTENTION_LAB_CACHE": str(sealed_folder.cache_root()),
    }
    server = Server(log, **places | environment)
    server.wait_until_it_listens()
    return server


@pytest.fixture(scope="module")
def server(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("log") / "log.txt"
    server = started(home, log, ATTENTION_LAB_WARMUP="off")
    yield server
    server.stop()


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[ClientConnection]:
    """A visitor's connection."""
    address = server.url.replace("http", "ws", 1) + "/_stcore/stream"
    async with connect(
        address, origin=Origin(server.url), subprotocols=[Subprotocol("streamlit")], max_size=None
    ) as connection:
        yield connection


def done(work: Coroutine[Any, Any, None]) -> None:
    """In a thread of its own: in this one the browser of other tests keeps an event loop."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


until = partial(until_it_is, seconds=60.0, every=0.05)


def ready(server: Server) -> dict[str, object]:
    """What the site answers to whoever asks whether visitors may come."""
    try:
        with urllib.request.urlopen(f"{server.url}/readyz", timeout=60) as answer:
            return dict(json.load(answer))
    except urllib.error.HTTPError as error:
        return dict(json.load(error))


async def visit(server: Server) -> None:
    """A visitor who opens a page; an exception on it is one here."""
    async with connected(server) as connection:
        await Tab(connection).open("ladder", {})


async def storm(server: Server) -> None:
    """A client that asks for a page two thousand times at once and leaves."""
    async with connected(server) as connection:
        for number in range(STORM):
            message = BackMsg()
            message.rerun_script.page_name = "ladder"
            message.rerun_script.query_string = f"ladder_seed={number}"
            await connection.send(message.SerializeToString())
        await visit(server)  # somebody else, meanwhile
        connection.transport.abort()  # without a word


def test_a_storm_of_messages_costs_the_site_no_memory(server: Server):
    done(visit(server))
    before, runs = server.memory().resident, metric(server.url, "page_run_seconds_count")
    done(storm(server))
    until(lambda: metric(server.url, "open_visits") == 0)
    assert 0 < metric(server.url, "page_run_seconds_count") - runs < 2 * BURST_OF_MESSAGES
    assert server.memory().resident - before < 300 * MB


async def generate(server: Server) -> None:
    """A visitor who starts a long generation and waits for some of its tokens."""
    async with connected(server) as connection:
        tab = Tab(connection)
        await tab.open("generate", {"generate_tokens": "200"})
        await tab.press("generate_start")
        until(lambda: metric(server.url, "generated_tokens_total") > 4)
        server.stop()


def test_a_site_that_is_killed_in_the_middle_of_a_generation_leaves_nothing(
    server: Server, home: Path, tmp_path: Path
):
    done(generate(server))
    assert list(home.rglob("*")) == []
    cache = sealed_folder.cache_root()
    assert [file.name for file in cache.iterdir() if file.name.startswith(".")] == []
    assert all(sealed_folder.is_sound(folder) for folder in cache.iterdir() if folder.is_dir())
    # the next one starts in a home in which nobody may write, not even root
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME"), "/proc")
    fresh = started(home, tmp_path / "log.txt", **nowhere)
    try:
        until(lambda: ready(fresh)["ready"] is True)
        done(visit(fresh))
        assert list(home.rglob("*")) == []
    finally:
        fresh.stop()
