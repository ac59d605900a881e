"""Run the site as a separate process: flood it with messages, then kill it mid-request."""

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

FLOOD_SIZE = 2_000  # messages
MB = 1_000_000


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator's home directory, which also contains temporary files."""
    return tmp_path_factory.mktemp("home")


def start_site(home: Path, log: Path, **environment: str) -> Server:
    """Start a site that can only write to this home and to the cache of converted weights."""
    paths = {
        **dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME"), str(home)),
        "ATTENTION_LAB_CACHE": str(sealed_folder.cache_root()),
    }
    server = Server(log, **paths | environment)
    server.wait_until_it_listens()
    return server


@pytest.fixture(scope="module")
def server(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("log") / "log.txt"
    server = start_site(home, log, ATTENTION_LAB_WARMUP="off")
    yield server
    server.stop()


@asynccontextmanager
async def connect_visitor(server: Server) -> AsyncIterator[ClientConnection]:
    """Connect as a visitor."""
    address = server.url.replace("http", "ws", 1) + "/_stcore/stream"
    async with connect(
        address, origin=Origin(server.url), subprotocols=[Subprotocol("streamlit")], max_size=None
    ) as connection:
        yield connection


until = partial(until_it_is, every=0.05)


def ready(server: Server) -> dict[str, object]:
    """Return the site's readiness response."""
    try:
        with urllib.request.urlopen(f"{server.url}/readyz", timeout=60) as answer:
            return dict(json.load(answer))
    except urllib.error.HTTPError as error:
        return dict(json.load(error))


async def visit(server: Server) -> None:
    """Open a page as a visitor. An exception on the page is raised here."""
    async with connect_visitor(server) as connection:
        await Tab(connection).open("ladder", {})


async def flood(server: Server) -> None:
    """Request a page two thousand times without waiting, then disconnect."""
    async with connect_visitor(server) as connection:
        for number in range(FLOOD_SIZE):
            message = BackMsg()
            message.rerun_script.page_name = "ladder"
            message.rerun_script.query_string = f"ladder_seed={number}"
            await connection.send(message.SerializeToString())
        await visit(server)  # meanwhile, another visitor opens a page
        connection.transport.abort()  # without a closing handshake


def test_message_flood_does_not_use_up_memory(server: Server):
    run_coroutine(visit(server))
    before, runs = server.memory().resident, metric(server.url, "page_run_seconds_count")
    run_coroutine(flood(server))
    until(lambda: metric(server.url, "open_visits") == 0)
    assert 0 < metric(server.url, "page_run_seconds_count") - runs < 2 * MESSAGE_BURST
    assert server.memory().resident - before < 300 * MB


async def close_code(connection: ClientConnection) -> int | None:
    """Return the code with which the site closes this connection."""
    with pytest.raises(ConnectionClosed) as closed:
        await connection.recv()
    return closed.value.rcvd.code if closed.value.rcvd else None


async def send_oversized_messages(server: Server) -> None:
    """Send a message slightly over the limit, then announce a much larger one."""
    async with connect_visitor(server) as connection:
        await connection.send(b"x" * (MAX_MESSAGE_BYTES + 1))
        assert await close_code(connection) == 1009
    async with connect_visitor(server) as connection:
        # Send only the frame header: the site responds before the content, which is never sent.
        masked = Frame(Opcode.BINARY, b"x" * 3 * MB).serialize(mask=True)
        connection.transport.write(masked[:14])
        assert await close_code(connection) == 1009


async def response_types(server: Server) -> set[str | None]:
    """Return the types of the site's responses to a request for Git information and a page."""
    async with connect_visitor(server) as connection:
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


async def send_unneeded_requests(server: Server) -> None:
    await send_oversized_messages(server)
    kinds = await response_types(server)
    assert "delta" in kinds
    assert "git_info_changed" not in kinds


def test_requests_that_no_page_needs_are_rejected(server: Server):
    run_coroutine(send_unneeded_requests(server))
    upload = urllib.request.Request(
        f"{server.url}/_stcore/upload_file/session/file", data=b"a file", method="PUT"
    )
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(upload, timeout=60)


async def generate(server: Server) -> None:
    """Start a long generation and wait for some of its tokens."""
    async with connect_visitor(server) as connection:
        tab = Tab(connection)
        await tab.open("generate", {"generate_tokens": "200"})
        await tab.press("generate_start")
        until(lambda: metric(server.url, "generated_tokens_total") > 4)
        server.stop()


def test_site_killed_during_a_generation_leaves_nothing_behind(
    server: Server, home: Path, tmp_path: Path
):
    run_coroutine(generate(server))
    assert list(home.rglob("*")) == []
    cache = sealed_folder.cache_root()
    assert [file.name for file in cache.iterdir() if file.name.startswith(".")] == []
    assert all(sealed_folder.is_sound(folder) for folder in cache.iterdir() if folder.is_dir())
    # the next site starts with a read-only home, even for root
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME"), "/proc")
    fresh = start_site(home, tmp_path / "log.txt", **nowhere)
    try:
        until(lambda: ready(fresh)["ready"] is True)
        run_coroutine(visit(fresh))
        assert list(home.rglob("*")) == []
    finally:
        fresh.stop()


async def open_heads(server: Server, moment: str, folders: Path) -> None:
    """Request the model that needs conversion, and stay connected until the moment."""
    async with connect_visitor(server) as connection:
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
    old = temporary / f"attention-lab-{'0' * 16}"  # left by a process that was killed
    old.mkdir()
    paths = {
        "TMPDIR": str(temporary),
        "ATTENTION_LAB_CACHE": str(cache) if place == "the cache" else "/proc/attention-lab",
        "ATTENTION_LAB_WARMUP": "off",
    }
    server = Server(tmp_path / "log.txt", **paths)
    try:
        server.wait_until_it_listens()
        assert not old.exists()
        run_coroutine(open_heads(server, moment, cache if place == "the cache" else temporary))
        assert server._process.wait(60) == -signal.SIGTERM
    finally:
        server.stop()
    assert list(temporary.glob("attention-lab-*")) == []
    complete = [f for f in cache.glob("*") if f.is_dir() and sealed_folder.is_sound(f)]
    assert [f for f in cache.glob("*") if f.is_dir()] == complete
    assert len(complete) <= (place == "the cache")
