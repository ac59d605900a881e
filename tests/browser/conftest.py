"""A real server and a real browser. Tests steer by what the page shows, not by waiting a while."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    expect,
)

from benchmarks.browser import Site
from tests.helpers.browser import PAINT_SECONDS, PHONE

expect.set_options(timeout=PAINT_SECONDS * 1000)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server for all tests that do not need a fresh one."""
    server = Site(tmp_path_factory.mktemp("server") / "log.txt")
    server.wait_until_it_listens()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def profile(browser: Browser) -> Iterator[BrowserContext]:
    """One profile for most tests: it keeps Streamlit's scripts as it compiled them."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    yield context
    context.close()


@pytest.fixture
def page(profile: BrowserContext) -> Iterator[Page]:
    """A new visitor. Uncaught errors in the page fail the test."""
    page = profile.new_page()
    page.set_default_timeout(PAINT_SECONDS * 1000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    for opened in profile.pages:
        opened.close()
    # nothing that the site stored, and nothing it was allowed, is left to the next visitor
    profile.set_storage_state({"cookies": [], "origins": []})
    profile.clear_permissions()
    assert not errors


@pytest.fixture
def phone(page: Page) -> Page:
    """A new visitor with a window as wide as a phone's."""
    page.set_viewport_size(PHONE)
    return page
