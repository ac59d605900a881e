"""All heads at once in a real browser: read, open, sort, save, and without a mouse."""

import io
import re
import urllib.parse
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from pages.compare.heads import statistics
from tests.helpers.browser import (
    PROJECTOR,
    SENTENCE,
    click,
    click_where_the_pointer_is,
    download,
    heatmap,
    last_number,
    open_page,
    point,
    press,
    read_by_keyboard,
    read_cell,
    settings,
    unfold,
)
from tests.helpers.bundled_models import DECODER, ENCODER, attention, bundled
from tests.helpers.mosaic import cell_read, painted, read_head, tiles, value_read
from tests.helpers.visitors import settled

N_HEADS = {ENCODER: 12, DECODER: 9}


def visit(page: Page, site: Site, **query: str) -> Locator:
    """The mosaic of a visit with these parameters, painted."""
    query = {"heads_text": SENTENCE, "heads_model": ENCODER, **query}
    open_page(page, site, f"/heads?{urllib.parse.urlencode(query)}", "Heads")
    return painted(page)


@pytest.mark.parametrize("model", [ENCODER, DECODER])
def test_what_is_read_is_the_tensor_within_what_is_said(page: Page, site: Site, model: str):
    figure = visit(page, site, heads_model=model)
    stated = page.get_by_text("A value read here is within").inner_text()
    bound = float(re.search(r"±([\d.e-]+) of", stated)[1])  # type: ignore[index]
    for layer, head, row, column in ((0, 2, 4, 3), (5, 8, 6, 0), (2, 0, 5, 5)):
        expected, tokens = attention(model, SENTENCE, layer, head)
        n, number = len(tokens.ids), layer * N_HEADS[model] + head
        text = read_head(figure, number, row, column, n, f"L{layer}H{head}")
        assert f"L{layer}H{head}: “{tokens.labels[row]}” → “{tokens.labels[column]}”: " in text
        shown, off = value_read(figure)
        assert abs(shown - float(expected[row, column])) <= off <= bound


def test_a_click_opens_the_head_and_the_address_says_so(page: Page, site: Site, other: Page):
    figure = visit(page, site, heads_hide="[CLS]")
    read_head(figure, 4 * 12 + 7, 3, 3, 11, "L4H7")
    click_where_the_pointer_is(page)
    title = "L4H7: weights"
    expect(heatmap(page, title)).to_be_visible()
    expect(page).to_have_url(re.compile("heads_head=7"))
    expected, _ = attention(ENCODER, SENTENCE, 4, 7)
    text = read_cell(heatmap(page, title), 5, 2)
    assert last_number(text) == pytest.approx(float(expected[5, 2]), rel=1e-5)
    # a cell that is clicked becomes the pair below
    click(heatmap(page, title).locator(".scroll canvas"))
    expect(page).to_have_url(re.compile("heads_query="))
    other.goto(page.url)
    expect(heatmap(other, title)).to_be_visible()
    chosen = re.search(r"heads_query=(\d+)", page.url)
    assert chosen
    expect(other.get_by_text(re.compile(f"^Query {chosen[1]} “"))).to_be_visible()


def test_on_a_phone_a_clicked_head_opens_in_a_sheet_from_below(phone: Page, site: Site):
    figure = visit(phone, site)
    close = phone.get_by_role("button", name="Close")
    expect(close).not_to_be_visible()
    read_head(figure, 2 * 12 + 3, 3, 3, 11, "L2H3")
    click_where_the_pointer_is(phone)
    opened = heatmap(phone, "L2H3: weights")
    expect(opened).to_be_in_viewport(ratio=0.6)
    # over the page, which has not moved: all heads are still there
    expect(figure).to_be_in_viewport()
    click(close)
    expect(close).not_to_be_visible()
    expect(opened).not_to_be_in_viewport()
    # beside all heads there is room, and nothing to close
    read_head(figure, 2 * 12 + 3, 3, 3, 11, "L2H3")
    click_where_the_pointer_is(phone)
    expect(close).to_be_visible()
    phone.set_viewport_size(PROJECTOR)
    expect(close).not_to_be_visible()
    expect(opened).to_be_visible()


def test_without_a_mouse(page: Page, site: Site):
    figure = visit(page, site, heads_layer="2", heads_head="5")
    # the first key shows where the reading begins
    press(figure.locator(".scroll canvas"), "ArrowRight")
    read_by_keyboard(figure, "L2H5: “")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    read_by_keyboard(figure, "L3H6: “")
    expected, tokens = attention(ENCODER, SENTENCE, 3, 6)
    row, column = divmod(int(expected.argmax()), len(tokens.ids))
    assert cell_read(figure) == (row, column)  # a head is entered at its largest weight
    page.keyboard.press("Shift+ArrowUp" if row else "Shift+ArrowDown")
    row += -1 if row else 1
    expect(figure.locator(".readout")).to_have_attribute("data-cell", f"{row} {column}")
    shown, off = value_read(figure)
    assert abs(shown - float(expected[row, column])) <= off
    page.keyboard.press("Enter")
    figure_of_head = heatmap(page, "L3H6: weights")
    expect(figure_of_head).to_be_visible()
    press(figure_of_head.locator(".scroll canvas"), "End", "End", "Enter")
    expect(page).to_have_url(re.compile(f"heads_key={len(tokens.ids) - 1}"))


def test_a_text_that_is_too_long_for_its_box_is_not_left_out_in_silence(page: Page, site: Site):
    visit(page, site)
    box = page.get_by_label("Sentence", exact=True)
    press(box, "Control+a")
    page.keyboard.insert_text("word " * 1100)
    expect(box).to_have_value(SENTENCE)
    expect(box).to_have_js_property(
        "validationMessage",
        "This text would be too long, so 5,500 characters weren't added. Shorten the text and try "
        "again.",
    )
    press(box, "End", "s")
    expect(box).to_have_value(f"{SENTENCE}s")
    expect(box).to_have_js_property("validationMessage", "")


def test_sorted_by_a_statistic(page: Page, site: Site):
    figure = visit(page, site, heads_count="6")
    assert [number for number, *_ in tiles(figure)] == list(range(72))
    height = figure.bounding_box()["height"]  # type: ignore[index]
    with settings(page):
        click(page.get_by_test_id("stSelectbox").filter(has_text="Order").locator("input"))
        page.get_by_role("option", name="Previous token").click()
    expect(figure.locator(".scroll canvas")).to_have_attribute(
        "data-heads", re.compile(r"^(\[\[|\],\[|[\d.,])+\]\]$")
    )
    page.wait_for_function(
        "canvas => JSON.parse(canvas.dataset.heads).length === 6",
        arg=figure.locator(".scroll canvas").element_handle(),
    )
    settled(page)
    assert [number for number, *_ in tiles(figure)] == by_previous_token()[:6]
    assert figure.bounding_box()["height"] == height  # type: ignore[index]
    expect(page.get_by_text("Weight on the position just before the query")).to_be_visible()


@cache
def by_previous_token() -> list[int]:
    """Heads by their mean weight on the token before, computed here."""
    scores = []
    for layer in range(6):
        for head in range(12):
            matrix, _ = weights_of(layer, head)
            scores.append(-float(matrix.diagonal(-1).mean()))
    return [int(number) for number in np.argsort(scores, kind="stable")]


@cache
def _records() -> Any:
    import torch

    model = bundled(ENCODER)
    tokens = model.tokenizer.encode(SENTENCE)
    with torch.inference_mode():
        return model.core(torch.tensor([tokens.ids]), record=True).records


def weights_of(layer: int, head: int) -> tuple[np.ndarray, int]:
    matrix = _records()[layer].weights[0, head].numpy()
    return matrix, len(matrix)


def test_256_tokens(page: Page, site: Site):
    text = "word " * 254
    figure = visit(page, site, heads_text=text)
    matrix, _ = attention(ENCODER, text, 1, 1)
    read_head(figure, 13, 200, 31, 256, "L1H1")
    shown, off = value_read(figure)  # a tile has fewer pixels than cells
    assert abs(shown - float(matrix[cell_read(figure)])) <= off
    expect(heatmap(page, ": weights")).to_be_visible()


def test_pictures_and_files_are_downloaded(page: Page, site: Site):
    figure = visit(page, site)
    assert download(figure, "PNG").path().read_bytes().startswith(b"\x89PNG")
    assert download(figure, "SVG").path().read_text(encoding="utf-8").count("<image") == 72
    unfold(page, "Download or share")
    with page.expect_download() as npz:
        click(page.get_by_role("button", name="All heads (NPZ)"))
    arrays = np.load(io.BytesIO(Path(npz.value.path()).read_bytes()))
    np.testing.assert_array_equal(arrays["weights"][5, 11], weights_of(5, 11)[0])
    link = page.locator(".code code").filter(has_text="heads_text=").first.inner_text()
    assert urllib.parse.parse_qs(urllib.parse.urlsplit(link.strip()).query)["heads_text"] == [
        SENTENCE
    ]


def test_definitions_stand_on_the_headings_of_the_table(page: Page, site: Site):
    visit(page, site)
    click(page.get_by_text("All heads in numbers"))
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    help_of_order = page.get_by_test_id("stSelectbox").filter(has_text="Order")
    tooltip = page.get_by_test_id("stTooltipContent")
    definitions = [statistic.definition[:40] for statistic in statistics.definitions()]
    with settings(page):
        said = point(
            help_of_order.get_by_test_id("stTooltipHoverTarget"), tooltip, re.escape(definitions[0])
        )
    for definition in definitions:
        assert definition in said
