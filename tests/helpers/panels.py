"""Read a lesson's drawn tensors in a real browser."""

import re

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, Position

from tests.helpers.browser import plain, point

ATTEMPTS = 30  # the previous run's value may still be drawn


def panel(page: Page, name: str) -> Locator:
    title = page.locator(".name").get_by_text(name, exact=True)
    return page.locator("figure.panel").filter(has=title)


def geometry(canvas: Locator) -> tuple[float, ...]:
    """Return left and top of the first cell, and a cell's width and height, in CSS pixels."""
    names = ("left", "top", "cell-width", "cell-height")
    return tuple(float(canvas.get_attribute(f"data-{name}") or 0) for name in names)


def readout_of(page: Page, name: str) -> Locator:
    return page.locator(".tensors").filter(has=panel(page, name)).locator(".readout")


def read(page: Page, name: str, row: int, column: int, *block: int) -> str:
    """Hover over a cell of a tensor, by default in its first block, and return the readout."""
    canvas = panel(page, name).locator("canvas")

    def place() -> Position:
        left, top, width, height = geometry(canvas)
        return {"x": left + (column + 0.5) * width, "y": top + (row + 0.5) * height}

    index = ", ".join(map(str, (*block, row, column)))
    return point(canvas, readout_of(page, name), re.escape(f"{name}[{index}]"), place)


def expect_cell(page: Page, name: str, cell: tuple[int, int], value: float) -> str:
    """Wait until a tensor's cell has this value, and return the readout."""
    for _ in range(ATTEMPTS):
        message = read(page, name, *cell)
        displayed = message.partition("= ")[2].split(" ")[0].replace("−", "-")
        if displayed and float(displayed) == pytest.approx(value, rel=1e-5):
            return message
        page.mouse.move(0, 0)
    pytest.fail(f"{name}{cell} is {message!r}, not {value}")


def framed_cells(
    page: Page, name: str, cell: tuple[int, ...], shapes: dict[str, tuple[int, ...]]
) -> tuple[str, str, dict[str, set[tuple[int, ...]]]]:
    """Return a cell's readout, the sum below it, and the framed indices of other tensors.

    Everything is read at the same moment, because a scrolling picture may lose the pointer. If the
    pointer isn't on the cell at that moment, try again.
    """
    for _ in range(ATTEMPTS):
        message = read(page, name, *cell)
        texts = readout_of(page, name), picture_of(page, name).locator(".arithmetic")
        canvases = [panel(page, other).locator("canvas").element_handle() for other in shapes]
        handles = [text.element_handle() for text in texts]
        now, line, framed = page.evaluate(_AT_ONE_MOMENT, [handles, canvases])
        if plain(now) == message:
            places = {
                other: {
                    tuple(int(i) for i in np.unravel_index(int(at), shape)) for at in cells.split()
                }
                for (other, shape), cells in zip(shapes.items(), framed, strict=True)
            }
            return message, plain(line), places
        page.mouse.move(0, 0)
    raise AssertionError(f"the pointer does not stay on {name}{cell}")


_AT_ONE_MOMENT = """([texts, canvases]) => [
  ...texts.map((text) => text.innerText),
  canvases.map((canvas) => canvas.dataset.framed ?? ""),
]"""


def picture_of(page: Page, name: str) -> Locator:
    return page.locator(".tensors").filter(has=panel(page, name))
