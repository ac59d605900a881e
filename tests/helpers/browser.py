"""Interact with pages in a real browser: open a page, type, move a slider, read a picture."""

import re
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import (
    Download,
    Locator,
    Page,
    Position,
    ViewportSize,
    expect,
)

from benchmarks.browser import Site
from tests.helpers.apptest import number_of
from tests.helpers.visitors import wait_until_settled
from ui.widgets.section_picker import ALL_SECTIONS

PHONE: ViewportSize = {"width": 390, "height": 844}
PROJECTOR: ViewportSize = {"width": 1280, "height": 720}
SENTENCE = "Seven small ships sailed past the old lighthouse"
ATTEMPTS = 3  # a picture or a list may be repainted or moved while it's used
PATIENCE_MS = 2_000


def open_page(page: Page, site: Site, path: str, heading: str) -> None:
    page.goto(site.url + path)
    expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()


def open_whole_page(page: Page, site: Site, path: str, heading: str) -> None:
    """Open a page with all its sections below each other; visitors see one at a time."""
    open_page(page, site, whole_page_path(path), heading)


def whole_page_path(path: str) -> str:
    """Return the URL path of a page with all its sections."""
    page, _, query = path.partition("?")
    part = f"{page.strip('/').replace('-', '_')}_part={ALL_SECTIONS}"
    return f"{page}?{part}&{query}" if query else f"{page}?{part}"


def click(target: Locator) -> None:
    """Click once painting is complete, because a moving target could make the click miss."""
    wait_until_settled(target.page)
    target.click()


def press(target: Locator, *keys: str) -> None:
    """Focus an element once painting is complete, then press keys on it one by one."""
    wait_until_settled(target.page)
    target.focus()
    for key in keys:
        target.page.keyboard.press(key)


def choose(box: Locator, typed: str = "") -> None:
    """Select a list's first option by keyboard, or the first one that matches `typed`.

    Enter selects the highlighted option. Without one it would close the list and select nothing.
    """
    for _ in range(ATTEMPTS):
        press(box)
        if typed:
            box.fill(typed)
        else:
            box.press("ArrowDown")
        try:
            expect(box).to_have_attribute(
                "aria-activedescendant", re.compile("."), timeout=PATIENCE_MS
            )
        except AssertionError:  # repainting closes the list
            box.press("Escape")
        else:
            box.press("Enter")
            return
    raise AssertionError("no option is marked")


def unfold(page: Page, title: str) -> None:
    """Open an expander by its title and wait until it's open.

    This uses the keyboard, because content painted above could move the title away from a pointer.
    """
    part = page.locator("details").filter(has=page.locator("summary").filter(has_text=title))
    press(part.locator("summary"), "Enter")
    expect(part).to_have_attribute("open", "")


def type_text(page: Page, label: str, text: str) -> None:
    wait_until_settled(page)
    box = page.get_by_label(label, exact=True)
    box.fill(text)
    lines = box.evaluate("box => box.tagName") == "TEXTAREA"
    box.press("Control+Enter" if lines else "Enter")


@contextmanager
def settings(page: Page, which: int = 0) -> Iterator[Locator]:
    """Open the settings of a page (or of a section) for the duration of the block."""
    press(page.get_by_role("button", name="Settings").nth(which), "Enter")
    opened = page.get_by_test_id("stPopoverBody")
    expect(opened).to_be_visible()
    yield opened
    page.keyboard.press("Escape")
    expect(opened).to_be_hidden()


def choose_example(page: Page, name: str, which: int = 0) -> None:
    """Select an example from the menu next to a text field."""
    press(page.get_by_role("button", name="Examples").nth(which), "Enter")
    page.get_by_role("menuitem", name=name).click()


def slider(page: Page, label: str, which: int = 0) -> Locator:
    """Return the part of a slider that the keyboard moves."""
    return page.get_by_test_id("stSlider").filter(has_text=label).nth(which).locator("input")


def set_slider(page: Page, label: str, which: int, steps: int) -> None:
    """Move a slider by keyboard.

    If it isn't on the page, it's in the page's settings.
    """
    wait_until_settled(page)
    change = slider(page, label, which)
    if not change.count():
        with settings(page):
            _move(change, steps)
    else:
        _move(change, steps)


def _move(moved: Locator, steps: int) -> None:
    page = moved.page
    expect(moved).to_be_enabled()  # an earlier click may be about to enable it
    wait_until_settled(page)
    moved.focus()
    for _ in range(abs(steps)):
        before = moved.input_value()
        page.keyboard.press("ArrowRight" if steps > 0 else "ArrowLeft")
        expect(moved).not_to_have_value(before)


def expect_next_page(page: Page, title: str) -> None:
    """Wait until the link to the next page is at the end of the page.

    While a page is redrawn and changes its length, the link exists twice.
    """
    expect(page.get_by_role("link", name=f"Next: {title}")).to_have_count(1)


def expect_parameter(page: Page, name: str, *values: str) -> None:
    """Wait until the URL has exactly these values for a parameter, in this order."""
    page.wait_for_url(
        lambda url: urllib.parse.parse_qs(urllib.parse.urlsplit(url).query).get(name) == [*values],
        wait_until="commit",
    )


def metric_value(page: Page, label: str) -> Locator:
    metric = page.get_by_test_id("stMetric").filter(has_text=label)
    return metric.get_by_test_id("stMetricValue")


def heatmap(page: Page, title: str) -> Locator:
    return page.locator("figure.heatmap").filter(has_text=title)


def point(
    target: Locator,
    readout: Locator,
    names: str,
    place: Callable[[], Position] | None = None,
    cell: str = "",
) -> str:
    """Move the pointer to a position until the readout matches, and return the readout.

    The position is recomputed before every attempt, because a repainted or scrolled picture loses
    the pointer; only the readout confirms that the pointer is there. The default position is the
    center of `target`. `names` is a regular expression; `cell` is an attribute of the readout to
    match instead.
    """
    wait_until_settled(target.page)
    for _ in range(ATTEMPTS):
        target.hover(position=place() if place else None)
        try:
            if cell:
                expect(readout).to_have_attribute("data-cell", cell, timeout=PATIENCE_MS)
            expect(readout).to_have_text(re.compile(_marked(names)), timeout=PATIENCE_MS)
        except AssertionError:
            message = text_without_marks(readout)
            target.page.mouse.move(0, 0)
        else:
            return text_without_marks(readout)
    raise AssertionError(f"{message!r} is read, and not {names!r}")


def click_where_the_pointer_is(page: Page) -> None:
    """Click without moving the pointer, even if the picture has moved since the last readout."""
    page.mouse.down()
    page.mouse.up()


def read_cell(figure: Locator, row: int, column: int) -> str:
    """Hover over the center of a heatmap cell. Return the readout and the exact number."""
    canvas = figure.locator(".scroll canvas")

    def place() -> Position:
        left, top, width, height = (
            float(canvas.get_attribute(f"data-{name}") or 0)
            for name in ("origin", "top", "cell", "row")
        )
        return {"x": left + (column + 0.5) * width, "y": top + (row + 0.5) * height}

    readout = figure.locator(".readout")
    for _ in range(ATTEMPTS):
        point(canvas, readout, ".", place, cell=f"{row} {column}")
        # read both together, because a repainted picture loses the pointer
        message, cell, value = readout.evaluate(
            "e => [e.innerText, e.dataset.cell, e.dataset.value]"
        )
        if cell == f"{row} {column}":
            return f"{plain(message)} = {value}"
    raise AssertionError(f"the pointer does not stay on {row}, {column}")


def exact(figure: Locator) -> float:
    """Return the exact number of the cell that is read."""
    return float(figure.locator(".readout").get_attribute("data-value") or "nan")


def download(figure: Locator, kind: str) -> Download:
    """Select PNG, SVG or CSV in a figure's Download menu."""
    figure.get_by_role("button", name="Download", exact=True).click()
    with figure.page.expect_download() as file:
        figure.get_by_role("button", name=kind, exact=True).click()
    return file.value


def read_by_keyboard(figure: Locator, start: str) -> str:
    """Return the readout after a key press, once it begins with `start`."""
    readout = figure.locator(".readout")
    expect(readout).to_have_text(re.compile(_marked(f"^{re.escape(start)}")))
    return text_without_marks(readout)


def readout(figure: Locator) -> str:
    """Return the readout without the bidi marks around right-to-left labels."""
    return text_without_marks(figure.locator(".readout"))


def parse_number(text: str) -> float:
    """Parse a number as drawings format it: "−0.5" or "1.2 × 10⁻⁷"."""
    return number_of(text)


def last_number(text: str) -> float:
    """Return the number at the end of a cell's readout."""
    return parse_number(text[re.search(r"\S+( × 10\S+)?$", text).start() :])  # type: ignore[union-attr]


def text_without_marks(element: Locator) -> str:
    return plain(element.inner_text())


def plain(text: str) -> str:
    """Return a text without the bidi marks around right-to-left labels."""
    return re.sub("[\u2068\u2069]", "", text)


def _marked(pattern: str) -> str:
    """Return a regular expression that also matches texts with bidi marks around labels."""
    return pattern.replace("“", "“\u2068?").replace("”", "\u2069?”")


PATHS = [
    "/",
    "/one-pass",
    "/glossary",
    "/exercise-sheet",
    "/heads",
    "/side-by-side",
    "/ablate",
    "/word-pairs",
    "/generated-tokens",
    "/what-is-recomputed",
    "/inside-the-cache",
    "/timing",
    "/variants",
    "/calculator",
    "/generate",
    "/models",
    "/why-attention",
    "/similarity",
    "/ladder",
    "/why-several-heads",
    "/shapes",
    "/masking",
    "/scaling",
    "/position",
    "/attention-without-the-matrix",
    "/against-pytorch",
    "/two-networks",
    "/who-sets-the-weights",
    "/watch-heads-form",
    "/cheaper-models",
    "/block",
    "/tokens",
]
