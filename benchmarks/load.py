"""Load test of the site: `python -m benchmarks.load --visitors 100`.

Each visitor is a WebSocket client that speaks Streamlit's protocol like a browser: it opens a page
with its own sentence, reads for one to four seconds, and opens the next page. On every eighth visit
it generates text and watches it to the end, or gets a message that too many texts are waiting. A
few real browsers run at the same time. A page counts as loaded when its script run has ended. An
exception on a page, a closed connection, a page that never loads or a text that never finishes is
an error.

It prints how long pages took (median and 95 %), the errors, and the site's memory over time, split
into caches, which have limits, and the rest, which shouldn't grow. The times are absolute, so other
busy processes distort them. The browsers represent visitors' machines, so they only get the CPU
time that the site and the clients leave over, and their own pages load late. The site runs as it's
hosted, with one process per core; ATTENTION_LAB_SITES=1 limits it to one.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shlex
import sys
import tempfile
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from playwright.async_api import Browser, async_playwright
from playwright.async_api import Error as PlaywrightError
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin, Subprotocol

from attention_core.costs.stopwatch import Samples
from benchmarks.browser import CHROMIUM_ARGUMENTS, Hosted, Memory, chromium_path
from benchmarks.timing import machine, table

# path -> query parameter for its text, if it has one
PAGES = {
    "": "home_text",
    "one-pass": "one_pass_text",
    "ladder": None,
    "shapes": None,
    "scaling": None,
    "block": "block_text",
    "tokens": "tokens_text",
    "heads": "heads_text",
    "side-by-side": "side_by_side_text",
    "ablate": "ablate_text",
    "word-pairs": "word_pairs_text",
    "what-is-recomputed": "what_is_recomputed_prompt",
    "inside-the-cache": "inside_the_cache_prompt",
    "variants": None,
    "calculator": None,
}
GENERATE_EVERY = 8  # visits
WORDS = "an old harbour keeps one small red boat near quiet stones while gulls watch its nets"
LATEST_SECONDS = 60.0  # later pages count as never loaded
LATEST_IN_BROWSER_SECONDS = 180.0  # browsers only get CPU time that's left
LATEST_TEXT_SECONDS = 180.0  # from pressing the button; visitors in the queue see their position
MEMORY_SAMPLES = 5
READING_SECONDS = (1.0, 4.0)
LIMIT_MEDIAN, LIMIT_95 = 0.5, 2.0  # seconds, for 100 visitors


@dataclass
class Crowd:
    """Results for all visitors: load times by page, and error counts by message."""

    seconds: list[tuple[str, float]] = field(default_factory=list)
    in_browsers: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    texts: list[float] = field(default_factory=list)  # seconds until each one finished
    rejected: int = 0  # too many texts were waiting
    memory: list[tuple[int, Memory]] = field(default_factory=list)  # with visits so far

    def add_page_load(self, page: str, begin: float) -> None:
        """Record that a page has loaded."""
        self.seconds.append((page, time.monotonic() - begin))


class Tab:
    """A visitor's connection, and the server state that the next message needs."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._fragment: tuple[str, float] | None = None  # id and rerun interval
        self._buttons: dict[str, str] = {}  # widget ids by key
        self._text = ""  # of the latest alerts
        self._query = ""  # the query string, which browsers send with every message
        self._page_hash = ""  # the open page; sent with every message that doesn't open one

    async def open(self, page: str, parameters: dict[str, str]) -> None:
        """Open a page and wait until its run has ended."""
        self._query, self._fragment = urllib.parse.urlencode(parameters), None
        message = BackMsg()
        message.rerun_script.page_name = page
        await self._run(message)

    async def press(self, key: str) -> None:
        """Press a button on the open page, by key."""
        message = self._message()
        state = WidgetState(id=self._buttons[key], trigger_value=True)
        message.rerun_script.widget_states.widgets.append(state)
        await self._run(message)

    async def watch(self, until: str) -> str:
        """Rerun the page's fragment until it shows this text or stops rerunning.

        Returns the text that's shown.
        """
        end = time.monotonic() + LATEST_TEXT_SECONDS
        while self._fragment is not None and until not in self._text:
            if time.monotonic() > end:
                raise TimeoutError(f"no {until!r}")
            fragment, interval = self._fragment
            await asyncio.sleep(interval)
            message = self._message()
            message.rerun_script.fragment_id = fragment
            message.rerun_script.is_auto_rerun = True
            await self._run(message)
        return self._text

    def _message(self) -> BackMsg:
        """A message that reruns the open page."""
        message = BackMsg()
        message.rerun_script.page_script_hash = self._page_hash
        return message

    async def _run(self, message: BackMsg) -> None:
        message.rerun_script.query_string = self._query
        await self._connection.send(message.SerializeToString())
        self._text = ""
        async with asyncio.timeout(LATEST_SECONDS):
            while not self._ended(ForwardMsg.FromString(await self._received())):
                pass

    async def _received(self) -> bytes:
        received = await self._connection.recv()
        if isinstance(received, str):
            raise TypeError("the server sent text instead of bytes")
        return received

    def _ended(self, message: ForwardMsg) -> bool:
        """Process a message from the server; returns whether it ends the run."""
        kind = message.WhichOneof("type")
        if kind == "new_session" and not message.metadata.run.fragment_ids:
            self._fragment = None  # a full run recreates its fragments
        elif kind == "navigation":
            self._page_hash = message.navigation.page_script_hash
        elif kind == "auto_rerun":
            self._fragment = message.auto_rerun.fragment_id, message.auto_rerun.interval
        elif kind == "delta" and message.delta.HasField("new_element"):
            element = message.delta.new_element
            shown = element.WhichOneof("type")
            if shown == "exception":
                raise RuntimeError(f"{element.exception.type}: {element.exception.message[:80]}")
            if shown == "button":
                *_, key = element.button.id.rpartition("-")
                self._buttons[key] = element.button.id
            elif shown == "alert":
                self._text += element.alert.body
        finished = kind == "script_finished"
        return finished and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN


async def visitor(url: str, crowd: Crowd, number: int, end: float) -> None:
    """Run one visitor until `end`."""
    choice = random.Random(number)
    headers = {"Cookie": f"_streamlit_xsrf=visitor-{number}"}
    address = url.replace("http", "ws", 1) + "/_stcore/stream"
    await asyncio.sleep(choice.uniform(0, READING_SECONDS[1]))  # spread out the arrivals
    try:
        async with connect(
            address,
            origin=Origin(url),
            subprotocols=[Subprotocol("streamlit")],
            additional_headers=headers,
            max_size=None,
        ) as connection:
            tab, visits = Tab(connection), 0
            while time.monotonic() < end:
                visits += 1
                if visits % GENERATE_EVERY == number % GENERATE_EVERY:
                    await _generate(tab, crowd, choice)
                else:
                    await _open(tab, crowd, choice)
                await asyncio.sleep(choice.uniform(*READING_SECONDS))
    except (ConnectionClosed, OSError, TimeoutError, RuntimeError, KeyError) as error:
        crowd.errors[f"{type(error).__name__}: {error}"[:120]] += 1


async def _open(tab: Tab, crowd: Crowd, choice: random.Random) -> None:
    page, parameter = choice.choice(list(PAGES.items()))
    begin = time.monotonic()
    await tab.open(page, {parameter: sentence(choice)} if parameter else {})
    crowd.add_page_load(page or "home", begin)


async def _generate(tab: Tab, crowd: Crowd, choice: random.Random) -> None:
    begin = time.monotonic()
    asked = {"generate_prompt": sentence(choice), "generate_tokens": "16"}
    await tab.open("generate", asked)
    crowd.add_page_load("generate", begin)
    begin = time.monotonic()
    await tab.press("generate_start")
    shown = await tab.watch("Done")
    if "runs are waiting" in shown:  # the text of an earlier visit may be shown too
        crowd.rejected += 1
    elif "Done" in shown:
        crowd.texts.append(time.monotonic() - begin)
    else:
        raise RuntimeError(f"no text was generated: {shown[-80:]!r}")


def sentence(choice: random.Random) -> str:
    """A random sentence that's almost certainly unique."""
    return " ".join(choice.choice(WORDS.split()) for _ in range(choice.randint(5, 12)))


READY = """
() => {
  const app = document.querySelector("[data-testid=stApp]");
  return app?.dataset.testScriptState === "notRunning" && document.querySelector("h1") &&
    !document.querySelector("[data-testid=stSkeleton]");
}
"""


# Playwright starts browsers in their own session, and Linux shares the CPU between sessions before
# programs (autogroup), so five browsers took two fifths of two cores from the site. A niced program
# may keep a core for milliseconds when the site needs it; one with idle scheduling (`chrt` from
# util-linux) yields immediately.
YIELDING = """#!/bin/sh
[ -w /proc/$$/autogroup ] && echo 19 > /proc/$$/autogroup
chrt --idle --pid 0 $$ 2> /dev/null
exec nice -n 19 {program} "$@"
"""


def low_priority_script(program: str, folder: Path) -> Path:
    """Write a script to `folder` that starts the program with idle CPU priority."""
    script = folder / "browser.sh"
    script.write_text(YIELDING.format(program=shlex.quote(program)), encoding="utf-8")
    script.chmod(0o700)
    return script


async def browsers(url: str, crowd: Crowd, count: int, end: float) -> None:
    """Run `count` real browsers that open page after page."""
    if not count:
        return
    with tempfile.TemporaryDirectory() as folder:
        async with async_playwright() as playwright:
            program = low_priority_script(
                chromium_path() or playwright.chromium.executable_path, Path(folder)
            )
            chromium = await playwright.chromium.launch(
                executable_path=program, args=CHROMIUM_ARGUMENTS
            )
            await _walk_in_browsers(chromium, url, crowd, count, end)
            await chromium.close()


async def _walk_in_browsers(
    chromium: Browser, url: str, crowd: Crowd, count: int, end: float
) -> None:

    async def walk(number: int) -> None:
        choice = random.Random(1000 + number)
        page = await (await chromium.new_context()).new_page()
        page.set_default_timeout(LATEST_IN_BROWSER_SECONDS * 1e3)
        while True:  # at least one page
            path, parameter = choice.choice(list(PAGES.items()))
            query = urllib.parse.urlencode({parameter: sentence(choice)} if parameter else {})
            begin = time.monotonic()
            try:
                await page.goto(f"{url}/{path}?{query}")
                await page.wait_for_function(READY)
                crowd.in_browsers.append(time.monotonic() - begin)
            except PlaywrightError as error:  # the others continue
                crowd.errors[f"in a browser, /{path}: {error.message}"[:120]] += 1
            if time.monotonic() >= end:
                return
            await asyncio.sleep(choice.uniform(*READING_SECONDS))

    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(walk(number))


async def run_crowd(
    url: str,
    n_visitors: int,
    n_browsers: int,
    seconds: float,
    memory: Callable[[], Memory] | None = None,
) -> Crowd:
    """Run visitors and browsers against the site for some seconds.

    memory: returns the site's memory; it's called `MEMORY_SAMPLES` times along the way.
    """
    crowd, end = Crowd(), time.monotonic() + seconds

    async def look() -> None:
        for _ in range(MEMORY_SAMPLES if memory is not None else 0):
            await asyncio.sleep(seconds / MEMORY_SAMPLES)
            looked = await asyncio.to_thread(memory)  # type: ignore[arg-type]
            crowd.memory.append((len(crowd.seconds), looked))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(look())
        tasks.create_task(browsers(url, crowd, n_browsers, end))
        for number in range(n_visitors):
            tasks.create_task(visitor(url, crowd, number, end))
    return crowd


def report(crowd: Crowd) -> str:
    """Load times in seconds by page and overall, and the errors."""
    by_page: dict[str, list[float]] = {}
    for page, took in crowd.seconds:
        by_page.setdefault(page, []).append(took)
    rows = [("page", "visits", "median, s", "95 %, s", "slowest, s")]
    by_name = [*sorted(by_page.items()), ("ALL PAGES", [took for _, took in crowd.seconds])]
    if crowd.in_browsers:
        by_name.append(("in real browsers", crowd.in_browsers))
    for page, seconds in by_name:
        rows.append(
            (
                page,
                str(len(seconds)),
                f"{Samples(tuple(seconds)).median:.2f}",
                f"{share_below(seconds, 0.95):.2f}",
                f"{max(seconds):.2f}",
            )
        )
    lines = [
        table(rows),
        f"finished texts: {len(crowd.texts)}{_spread(crowd.texts)}; "
        f"rejected because the queue was full: {crowd.rejected}",
    ]
    lines += [f"ERROR, {count} times: {text}" for text, count in crowd.errors.most_common()]
    return "\n".join(lines)


def memory_table(looks: Sequence[tuple[int, Memory]]) -> str:
    """The site's memory by number of visits: total, caches, and the rest."""
    rows = [["visits", "memory, MB", "caches", "rest"]]
    for visits, memory in looks:
        numbers = (memory.resident, memory.cached, memory.rest)
        rows.append([f"{visits:,}", *(f"{n_bytes / 1e6:,.0f}" for n_bytes in numbers)])
    return table(rows)


def _spread(seconds: Sequence[float]) -> str:
    """Median and 95 % in parentheses, or an empty string."""
    if not seconds:
        return ""
    median = Samples(tuple(seconds)).median
    return f" (median {median:.1f} s, 95 % {share_below(seconds, 0.95):.1f} s)"


def share_below(values: Sequence[float], share: float) -> float:
    """The smallest value that is at least as large as this share of the values."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the load test, print the results, and return 1 if there were errors."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load")
    parser.add_argument("--visitors", type=int, default=100)
    parser.add_argument("--browsers", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--url", help="a running site; by default, one is started")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        server = None if options.url else Hosted(Path(folder) / "log.txt")
        try:
            if server is not None:
                server.wait_until_it_listens()
            url = options.url or server.url  # type: ignore[union-attr]
            asyncio.run(run_crowd(url, 4, 0, 20))  # warm-up: the first visitors wait for the models
            memory = server.memory if server is not None else None
            before = memory() if memory is not None else None
            crowd = asyncio.run(
                run_crowd(url, options.visitors, options.browsers, options.seconds, memory)
            )
        finally:
            if server is not None:
                server.stop()
    print(f"{options.visitors} visitors and {options.browsers} browsers for {options.seconds:g} s")
    print(f"{machine()}\n")
    print(report(crowd))
    if before is not None:
        print(f"\n{memory_table([(0, before), *crowd.memory])}")
    return 1 if crowd.errors else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
