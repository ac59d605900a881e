"""A real server and a real browser. Tests steer by what the page shows, not by waiting a while."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

from benchmarks.browser import Server, Site
from tests.helpers.browser import PHONE
from tests.helpers.shared_server import shared_server
from tests.helpers.visitors import PAINT_SECONDS, new_page, visit_in, visitor

WINDOW: ViewportSize = {"width": 1440, "height": 1000}

expect.set_options(timeout=PAINT_SECONDS * 1000)


@pytest.fixture(scope="session")
def folder_of_the_run(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The same folder in all processes of a run."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def site(folder_of_the_run: Path) -> Iterator[Site]:
    """One server for all tests, of all processes, that do not need a fresh one."""
    with shared_server(folder_of_the_run) as site:
        yield site


@pytest.fixture
def alone_in_line(folder_of_the_run: Path) -> Iterator[None]:
    """No test of another process generates on the shared server: they stand in one line."""
    with FileLock(folder_of_the_run / "line.lock"):
        yield


@pytest.fixture(scope="session")
def profile(browser: Browser) -> Iterator[BrowserContext]:
    """One profile for most tests: it keeps Streamlit's scripts as it compiled them."""
    context = browser.new_context(viewport=WINDOW)
    yield context
    context.close()


@pytest.fixture(scope="session")
def tab(profile: BrowserContext) -> Page:
    """One page for most tests: opening the site in it costs two thirds of what a new page costs."""
    return new_page(profile)


@pytest.fixture
def page(tab: Page) -> Iterator[Page]:
    """A visitor who has not been on the site. Uncaught errors in the page fail the test.

    A test that adds listeners or scripts to its page takes `own_page`: they would stay in this one.
    """
    with visit_in(tab):
        yield tab
    tab.set_viewport_size(WINDOW)
    tab.context.clear_permissions()


@pytest.fixture
def own_page(profile: BrowserContext) -> Iterator[Page]:
    """A new visitor's page in the same profile that is closed after the test."""
    with visitor(profile) as page, visit_in(page):
        yield page


@pytest.fixture
def phone(page: Page) -> Page:
    """A new visitor with a window as wide as a phone's."""
    page.set_viewport_size(PHONE)
    return page


@pytest.fixture
def other(profile: BrowserContext) -> Iterator[Page]:
    """A second visitor at the same time, who needs no other process of the browser."""
    with visitor(profile) as page:
        yield page


@pytest.fixture
def newcomer(browser: Browser) -> Iterator[Page]:
    """A visitor whose browser has kept nothing of the site, not even its scripts."""
    with browser.new_context() as context, visitor(context) as page:
        yield page


@pytest.fixture
def fresh_site(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers that nobody has visited, stopped at the end of the test."""
    with ExitStack() as stack:

        def start(**environment: str) -> Server:
            server = Server(tmp_path / "log.txt", **environment)
            stack.callback(server.stop)
            server.wait_until_it_listens()
            return server

        yield start
