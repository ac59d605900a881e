"""The site as a process of its own: a storm of messages, and a kill in the middle of its work."""

import asyncio
import json
import signal
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.typing import Origin, Subprotocol

from benchmarks.browser import Server, metric
from benchmarks.load import Tab
from pretrained import sealed_folder
from serving.limits import MAX_MESSAGE_BYTES, MESSAGE_BURST
from tests.helpers.coroutines import run_coroutine
from tests.helpers.waiting import wait_until as until_it_is

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


until = partial(until_it_is, every=0.05)


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
    run_coroutine(visit(server))
    before, runs = server.memory().resident, metric(server.url, "page_run_seconds_count")
    run_coroutine(storm(server))
    until(lambda: metric(server.url, "open_visits") == 0)
    assert 0 < metric(server.url, "page_run_seconds_count") - runs < 2 * MESSAGE_BURST
    assert server.memory().resident - before < 300 * MB


async def end_of(connection: ClientConnection) -> int | None:
    """The code with which the site ends this connection."""
    with pytest.raises(ConnectionClosed) as closed:
        await connection.recv()
    return closed.value.rcvd.code if closed.value.rcvd else None


async def too_much(server: Server) -> None:
    """Somebody sends a little more than a browser has to say, then announces much more."""
    async with connected(server) as connection:
        await connection.send(b"x" * (MAX_MESSAGE_BYTES + 1))
        assert await end_of(connection) == 1009
    async with connected(server) as connection:
        # The head of a frame alone: the answer comes before its content, which is never sent.
        masked = Frame(Opcode.BINARY, b"x" * 3 * MB).serialize(mask=True)
        connection.transport.write(masked[:14])
        assert await end_of(connection) == 1009


async def kinds_of_answers(server: Server) -> set[str | None]:
    """What the site sends to somebody who asks for the state of its repository and for a page."""
    async with connected(server) as connection:
        await connection.send(BackMsg(load_git_info=True).SerializeToString())
        page = BackMsg()
        page.rerun_script.page_name = "ladder"
        await connection.send(page.SerializeToString())
        kinds = set[str | None]()
        while "script_finished" not in kinds:
            answer = await connection.recv()
            assert isinstance(answer, bytes)
            kinds.add(ForwardMsg.FromString(answer).WhichOneof("type"))
        return kinds


async def ask_for_what_no_page_needs(server: Server) -> None:
    await too_much(server)
    kinds = await kinds_of_answers(server)
    assert "delta" in kinds
    assert "git_info_changed" not in kinds


def test_what_no_page_needs_is_refused(server: Server):
    run_coroutine(ask_for_what_no_page_needs(server))
    upload = urllib.request.Request(
        f"{server.url}/_stcore/upload_file/session/file", data=b"a file", method="PUT"
    )
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(upload, timeout=60)


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
    run_coroutine(generate(server))
    assert list(home.rglob("*")) == []
    cache = sealed_folder.cache_root()
    assert [file.name for file in cache.iterdir() if file.name.startswith(".")] == []
    assert all(sealed_folder.is_sound(folder) for folder in cache.iterdir() if folder.is_dir())
    # the next one starts in a home in which nobody may write, not even root
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME"), "/proc")
    fresh = started(home, tmp_path / "log.txt", **nowhere)
    try:
        until(lambda: ready(fresh)["ready"] is True)
        run_coroutine(visit(fresh))
        assert list(home.rglob("*")) == []
    finally:
        fresh.stop()


async def look_at_heads(server: Server, moment: str, folders: Path) -> None:
    """A visitor who asks for the model that has to be converted, and stays until the moment."""
    async with connected(server) as connection:
        opening = asyncio.ensure_future(
            Tab(connection).open("heads", {"heads_model": "smollm2-135m-instruct"})
        )
        if moment == "afterwards":
            await opening
        while not list(folders.rglob("model.safetensors")):
            await asyncio.sleep(0.01)
        server._process.send_signal(signal.SIGTERM)
        opening.cancel()


@pytest.mark.parametrize(
    ("place", "moment"),
    [("the cache", "while it converts"), ("a temporary folder", "afterwards")],
)
def test_shutdown_removes_temporary_folders(place: str, moment: str, tmp_path: Path):
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    temporary.mkdir()
    old = temporary / f"attention-lab-{'0' * 16}"  # of a process that was killed
    old.mkdir()
    places = {
        "TMPDIR": str(temporary),
        "ATTENTION_LAB_CACHE": str(cache) if place == "the cache" else "/proc/attention-lab",
        "ATTENTION_LAB_WARMUP": "off",
    }
    server = Server(tmp_path / "log.txt", **places)
    try:
        server.wait_until_it_listens()
        assert not old.exists()
        run_coroutine(look_at_heads(server, moment, cache if place == "the cache" else temporary))
        assert server._process.wait(60) == -signal.SIGTERM
    finally:
        server.stop()
    assert list(temporary.glob("attention-lab-*")) == []
    complete = [f for f in cache.glob("*") if f.is_dir() and sealed_folder.is_sound(f)]
    assert [f for f in cache.glob("*") if f.is_dir()] == complete
    assert len(complete) <= (place == "the cache")
