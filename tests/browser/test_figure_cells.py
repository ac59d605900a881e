"""Compare the readout, table and CSV file of every figure with cells to its tensor."""

import csv
import io
import urllib.parse
from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import ArrayLike
from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from pages.learn.masking import numbers
from tests.helpers.browser import (
    SENTENCE,
    download,
    exact,
    heatmap,
    open_page,
    open_whole_page,
    parse_number,
    read_cell,
)
from tests.helpers.bundled_models import DECODER, ENCODER, weights
from tests.helpers.mosaic import painted, read_head, value_read
from tests.helpers.panels import panel, picture_of, read, readout_of
from tests.helpers.visitors import wait_until_settled

N_CELLS = 6
LAYER, HEAD = 3, 4
# The site and the tests may add up the same float32 products in a different order.
SUMMED = {"rel": 1e-5, "abs": 1e-7}
DIGITS = {"rel": 5e-6}  # tables round to six digits


def cells(*shape: int) -> list[tuple[int, ...]]:
    """Return random indices of a tensor, the same in every run."""
    at = np.random.default_rng(0).choice(np.prod(shape), N_CELLS, replace=False)
    return [tuple(map(int, np.unravel_index(one, shape))) for one in at]


def visit(page: Page, site: Site, model: str) -> None:
    query = {"heads_text": SENTENCE, "heads_model": model, "heads_layer": LAYER, "heads_head": HEAD}
    open_page(page, site, f"/heads?{urllib.parse.urlencode(query)}", "Heads")
    painted(page)


def table(figure: Locator) -> list[list[str]]:
    """Return the rows of a figure's table, without column headings."""
    figure.get_by_role("button", name="Show table").click()
    rows = figure.locator(".numbers tbody tr")
    expect(rows.first).to_be_visible()
    return rows.evaluate_all("rows => rows.map((row) => [...row.cells].map((c) => c.textContent))")


def in_file(figure: Locator) -> list[list[str]]:
    """Return the same rows from the CSV file."""
    text = download(figure, "CSV").path().read_text(encoding="utf-8-sig")
    return list(csv.reader(io.StringIO(text)))[1:]


@pytest.mark.parametrize("model", [ENCODER, DECODER])
def test_heatmap(page: Page, site: Site, model: str):
    visit(page, site, model)
    expected = weights(model, SENTENCE, LAYER, HEAD)
    figure = heatmap(page, f"L{LAYER}H{HEAD}: weights")
    for row, column in cells(*expected.shape):
        message = read_cell(figure, row, column)
        if model == DECODER and column > row:
            assert "masked" in message
        else:
            assert exact(figure) == pytest.approx(float(expected[row, column]), **SUMMED)
    visible = np.tri(*expected.shape) > 0 if model == DECODER else expected == expected
    displayed, saved = (np.array(rows(figure))[:, 1:] for rows in (table, in_file))
    assert set(displayed[~visible]) | set(saved[~visible]) <= {""}  # masked
    agree(displayed[visible], saved[visible], expected[visible])


def test_all_heads(page: Page, site: Site):
    """Read single cells, then the largest weight of each head and its query and key."""
    visit(page, site, ENCODER)
    figure = painted(page)
    n = len(weights(ENCODER, SENTENCE, 0, 0))
    for layer, head, row, column in cells(6, 12, n, n):
        expected = float(weights(ENCODER, SENTENCE, layer, head)[row, column])
        read_head(figure, 12 * layer + head, row, column, n, f"L{layer}H{head}")
        displayed, off = value_read(figure)  # the picture of all heads stores one byte per weight
        assert abs(displayed - expected) <= off < 0.01
    rows, saved = table(figure), in_file(figure)
    assert [row[:3] for row in rows] == [row[:3] for row in saved]
    assert [row[0] for row in saved] == [f"L{at // 12}H{at % 12}" for at in range(72)]
    largest = [weights(ENCODER, SENTENCE, at // 12, at % 12).max() for at in range(72)]
    agree([row[3] for row in rows], [row[3] for row in saved], largest)


def test_tensors(page: Page, site: Site):
    open_whole_page(page, site, "/masking", "Masking and dropout")
    expect(panel(page, "weights").locator("canvas")).to_be_visible()
    wait_until_settled(page)
    expected = numbers.ways(numbers.example("boy")).filled.numpy()
    for row, column in cells(*expected.shape):
        read(page, "weights", row, column)
        value = readout_of(page, "weights").get_attribute("data-value") or ""
        assert float(value) == pytest.approx(float(expected[row, column]), **SUMMED)
    figure = picture_of(page, "weights")
    displayed, saved = (
        {index: value for name, index, value in rows(figure) if name == "weights"}
        for rows in (table, in_file)
    )
    indices = [", ".join(map(str, at)) for at in np.ndindex(expected.shape)]
    assert list(displayed) == list(saved) == indices
    agree(displayed.values(), saved.values(), expected.ravel())


def agree(displayed: Iterable[str], saved: Iterable[str], expected: ArrayLike) -> None:
    """Check the exact numbers of a file and the rounded ones of a table."""
    in_the_file = [float(value) for value in saved]
    assert in_the_file == pytest.approx(np.array(expected), **SUMMED)
    assert [parse_number(value) for value in displayed] == pytest.approx(in_the_file, **DIGITS)
