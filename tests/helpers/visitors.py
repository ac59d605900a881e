"""Browser pages for visitors, with a way to wait until they've settled."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, Download, Error, Page

# For waits that aren't about speed: the machine may be busy, and a job may be queued behind another
# test's job.
PAINT_SECONDS = 120

# Browser storage that a site may use, except the cache.
STORED = "cookies,local_storage,indexeddb,file_systems,service_workers,cache_storage"

_SETTLED = (Path(__file__).parent / "settled.js").read_text(encoding="utf-8")


def new_page(context: BrowserContext) -> Page:
    """Create a page in a profile that supports `wait_until_settled`."""
    page = context.new_page()
    page.set_default_timeout(PAINT_SECONDS * 1000)
    tell_when_settled(page)
    return page


@contextmanager
def visitor(context: BrowserContext) -> Iterator[Page]:
    """Yield a new page in a profile and close it afterwards; fail on uncaught errors in it."""
    page = new_page(context)
    with no_uncaught_errors(page):
        try:
            yield page
        finally:
            page.close()


@contextmanager
def visit_in(tab: Page) -> Iterator[None]:
    """Reset a shared page for a first-time visitor; fail on uncaught errors in it."""
    with no_uncaught_errors(tab):
        yield
        # clear everything that the site stored
        tab.goto("about:blank")
    tab.mouse.move(0, 0)
    forget(tab)


def forget(page: Page) -> None:
    """Clear everything that sites have stored in a page's profile.

    Playwright's `set_storage_state` also clears the cache. Every test would then download and
    compile Streamlit's scripts again, a third of the cost of opening a page.
    """
    session = page.context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": STORED})
    session.detach()


@contextmanager
def open_offline(context: BrowserContext, download: Download) -> Iterator[Page]:
    """Open a downloaded page from its file without a network.

    A request, a console message or an uncaught error fails the test.
    """
    path = Path(download.path()).with_suffix(".html")
    path.write_bytes(Path(download.path()).read_bytes())
    context.set_offline(True)
    requests: list[str] = []
    complaints: list[str] = []
    with context, visitor(context) as saved:
        saved.on("request", lambda request: requests.append(request.url))
        saved.on("console", lambda message: complaints.append(message.text))
        saved.goto(path.as_uri())
        yield saved
    assert requests == [path.as_uri()]
    assert complaints == []


@contextmanager
def no_uncaught_errors(page: Page) -> Iterator[None]:
    """Fail at the end if the page's scripts raised an uncaught error."""
    errors: list[str] = []

    def note(error: Error) -> None:
        errors.append(str(error))

    page.on("pageerror", note)
    try:
        yield
    finally:
        page.remove_listener("pageerror", note)
    assert errors == []


def tell_when_settled(page: Page) -> None:
    """Instrument every document that `page` opens, so that `wait_until_settled` works."""
    page.add_init_script(_SETTLED)


def wait_until_settled(page: Page) -> None:
    """Wait until all requested script runs have finished and are painted.

    The page then stays the same until there is user input or a job makes progress.
    """
    page.evaluate("(patience) => window.settled(patience)", PAINT_SECONDS * 1000)
