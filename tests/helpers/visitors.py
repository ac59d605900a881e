"""Visitors of the site: pages of a browser that tell when they have settled."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, Download, Error, Page

# For whatever is no claim about speed: the machine may be busy, and a job may wait in line behind
# one of another test.
PAINT_SECONDS = 120

# What a site may keep in a browser, but for the cache.
STORED = "cookies,local_storage,indexeddb,file_systems,service_workers,cache_storage"

_SETTLED = (Path(__file__).parent / "settled.js").read_text(encoding="utf-8")


def new_page(context: BrowserContext) -> Page:
    """A page in a profile, in which `wait_until_settled` works."""
    page = context.new_page()
    page.set_default_timeout(PAINT_SECONDS * 1000)
    tell_when_settled(page)
    return page


@contextmanager
def visitor(context: BrowserContext) -> Iterator[Page]:
    """A new page in a profile, closed at the end. Uncaught errors in it fail the test."""
    page = new_page(context)
    with no_uncaught_errors(page):
        try:
            yield page
        finally:
            page.close()


@contextmanager
def visit_in(tab: Page) -> Iterator[None]:
    """Have a page that is kept open be a new visitor's. Uncaught errors in it fail the test."""
    with no_uncaught_errors(tab):
        yield
        # nothing that the site stored is left to the next visitor
        tab.goto("about:blank")
    tab.mouse.move(0, 0)
    forget(tab)


def forget(page: Page) -> None:
    """Remove what any site has stored in the profile of a page.

    Playwright's `set_storage_state` also empties the cache: each test would then fetch and compile
    Streamlit's scripts again, a third of what it costs to open a page.
    """
    session = page.context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": STORED})
    session.detach()


@contextmanager
def open_offline(context: BrowserContext, download: Download) -> Iterator[Page]:
    """A downloaded page, opened from its file without a network.

    A request, a line in the console or an uncaught error fails the test.
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
    """Fail at the end if scripts of the page raised what nothing caught."""
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
    """Watch every document that `page` opens from now on, so that `wait_until_settled` works."""
    page.add_init_script(_SETTLED)


def wait_until_settled(page: Page) -> None:
    """Wait until every run of the script that the page asked for has ended and is painted.

    What is then on the page stays there until somebody acts or a job goes on.
    """
    page.evaluate("(patience) => window.settled(patience)", PAINT_SECONDS * 1000)
