"""Locate heads in the mosaic in a real browser, and read its cells."""

import json
import re

from playwright.sync_api import Locator, Page, Position, expect

from tests.helpers.browser import exact, point
from tests.helpers.visitors import wait_until_settled


def painted(page: Page) -> Locator:
    figure = page.locator("figure.mosaic")
    expect(figure.locator(".scroll canvas")).to_have_attribute("data-painted", re.compile("."))
    wait_until_settled(page)
    return figure


def tiles(figure: Locator) -> list[tuple[int, float, float]]:
    """Return the number and the corner of each head, in drawing order."""
    return [tuple(tile) for tile in json.loads(attribute(figure, "heads"))]


def attribute(figure: Locator, name: str) -> str:
    return figure.locator(".scroll canvas").get_attribute(f"data-{name}") or ""


def read_head(figure: Locator, head: int, row: int, column: int, n_tokens: int, name: str) -> str:
    """Hover over the center of a head's cell, if it has its own pixels, and read it."""

    def place() -> Position:
        size = float(attribute(figure, "size"))
        ((x, y),) = ((x, y) for number, x, y in tiles(figure) if number == head)
        return {"x": x + (column + 0.5) * size / n_tokens, "y": y + (row + 0.5) * size / n_tokens}

    cell = f"{row} {column}" if size_of_a_cell(figure, n_tokens) > 1 else ""
    names = rf"^{re.escape(name)}\b.*: “.*” → “"
    return point(figure.locator(".scroll canvas"), figure.locator(".readout"), names, place, cell)


def size_of_a_cell(figure: Locator, n_tokens: int) -> float:
    """Return the size of a cell in CSS pixels."""
    return float(attribute(figure, "size")) / n_tokens


def value_read(figure: Locator) -> tuple[float, float]:
    """Return the value in the readout and its error bound."""
    return exact(figure), float(figure.locator(".readout").get_attribute("data-off") or "nan")


def cell_read(figure: Locator) -> tuple[int, int]:
    """Return the row and the column in the readout."""
    row, column = (figure.locator(".readout").get_attribute("data-cell") or "").split()
    return int(row), int(column)
