"""Read the drawn tensors of a lesson in a real browser."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

ATTEMPTS = 30  # the page may be painting


def panel(page: Page, name: str) -> Locator:
    return page.locator("figure.panel").filter(has=page.get_by_text(name, exact=True))


def read(page: Page, name: str, row: int, column: int) -> str:
    """Hover a cell of a tensor and read what its picture then says."""
    figure = panel(page, name)
    canvas = figure.locator("canvas")
    said = page.locator(".tensors").filter(has=figure).locator(".readout")
    for _ in range(ATTEMPTS):
        left, top, width, height = (
            float(canvas.get_attribute(f"data-{part}") or 0)
            for part in ("left", "top", "cell-width", "cell-height")
        )
        x, y = left + (column + 0.5) * width, top + (row + 0.5) * height
        canvas.hover(position={"x": x, "y": y})
        try:
            expect(said).to_contain_text(f"{name}[{row}, {column}]", timeout=2_000)
        except AssertionError:  # it was drawn anew under the pointer
            continue
        break
    return re.sub("[\u2068\u2069]", "", said.inner_text())


def expect_cell(page: Page, name: str, cell: tuple[int, int], value: float) -> str:
    """Wait until a cell of a tensor holds a value; what its picture says of it."""
    for _ in range(ATTEMPTS):
        said = read(page, name, *cell)
        shown = said.partition("= ")[2].split(" ")[0].replace("−", "-")
        if shown and float(shown) == pytest.approx(value, rel=1e-5):
            return said
        page.mouse.move(0, 0)
        page.evaluate("new Promise((resolve) => requestAnimationFrame(resolve))")
    pytest.fail(f"{name}{cell} is {said!r}, not {value}")
