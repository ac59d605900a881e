"""A server of the site and a Chromium, for the benchmarks that look at pages."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright


@contextmanager
def site(**environment: str) -> Iterator[str]:
    """The address of a server of one's own, with these variables in its environment."""
    from tests.browser.conftest import Site

    with tempfile.TemporaryDirectory() as folder:
        server = Site(Path(folder) / "log.txt", **environment)
        try:
            server.wait_until_it_listens()
            yield server.url
        finally:
            server.stop()


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without windows."""
    from tests.browser.conftest import CHROMIUM_ARGUMENTS, chromium_path

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_path(), args=CHROMIUM_ARGUMENTS
        )
        yield browser
        browser.close()
