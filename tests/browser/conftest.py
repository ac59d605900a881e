"""Fixtures for a real server and browser. Tests wait for page state, never for a fixed time."""

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
def run_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return the folder that all processes of a test run share."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def site(run_folder: Path) -> Iterator[Site]:
    """Yield the server that the tests of all processes share unless they need a fresh one."""
    with shared_server(run_folder) as site:
        yield site


@pytest.fixture
def exclusive_generation(run_folder: Path) -> Iterator[None]:
    """Generate on the shared server from only one test at a time, across all processes."""
    with FileLock(run_folder / "line.lock"):
        yield


@pytest.fixture(scope="session")
def profile(browser: Browser) -> Iterator[BrowserContext]:
    """Yield a shared profile, which caches Streamlit's compiled scripts."""
    context = browser.new_context(viewport=WINDOW)
    yield context
    context.close()


@pytest.fixture(scope="session")
def tab(profile: BrowserContext) -> Page:
    """Yield a shared page. Opening the site in it costs two thirds of opening a new page."""
    return new_page(profile)


@pytest.fixture
def page(tab: Page) -> Iterator[Page]:
    """Yield a page for a first-time visitor. Uncaught errors in the page fail the test.

    Tests that add listeners or scripts use `own_page`, because they would persist in this page.
    """
    with visit_in(tab):
        yield tab
    tab.set_viewport_size(WINDOW)
    tab.context.clear_permissions()


@pytest.fixture
def own_page(profile: BrowserContext) -> Iterator[Page]:
    """Yield a new page in the shared profile and close it after the test."""
    with visitor(profile) as page, visit_in(page):
        yield page


@pytest.fixture
def phone(page: Page) -> Page:
    """Yield a first-time visitor's page in a phone-sized window."""
    page.set_viewport_size(PHONE)
    return page


@pytest.fixture
def other(profile: BrowserContext) -> Iterator[Page]:
    """Yield a page for a second, concurrent visitor in the same browser process."""
    with visitor(profile) as page:
        yield page


@pytest.fixture
def newcomer(browser: Browser) -> Iterator[Page]:
    """Yield a page in a new profile, with nothing cached, not even the site's scripts."""
    with browser.new_context() as context, visitor(context) as page:
        yield page


@pytest.fixture
def fresh_site(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Yield a function that starts fresh servers. They stop at the end of the test."""
    with ExitStack() as stack:

        def start(**environment: str) -> Server:
            server = Server(tmp_path / "log.txt", **environment)
            stack.callback(server.stop)
            server.wait_until_it_listens()
            return server

        yield start
