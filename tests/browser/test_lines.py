"""Heads as lines in a browser, under the policy of a hosted site; pictures to download."""

import io
import re
import struct
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from benchmarks.browser import Server, Site
from tests.helpers.browser import download

pytestmark = pytest.mark.browser

N, T = 3, 9
LABELS = ["[CLS]", "The", "<b>x</b>", "didn't", "שלום", "😀", "a&b", "\x08", "[SEP]"]
NAMES = ["L3H0", "L3H4", "L5H1"]
SCRIPT = """
import streamlit as st
from tests.browser.test_lines import LABELS, NAMES, weights
from ui.canvas.lines import lines
st.title("Lines")
causal = "causal" in st.query_params
repeat = int(st.query_params.get("repeat", "1"))
title = "Three heads: a <b>/.."
lines(weights(repeat), NAMES, LABELS * repeat, title=title, causal=causal, key="k")
st.text("below")
"""
HOSTED = """
import streamlit as st
from starlette.middleware import Middleware
from web.security_headers import SecurityHeaders, security_headers
from ui.frame.page_assets import inline_scripts
headers = security_headers(inline_scripts())
app = st.App({page!r}, middleware=[Middleware(SecurityHeaders, headers)])
"""


def weights(repeat: int = 1) -> np.ndarray:
    """Softmaxed rows for N heads; the pairs of key 1 are left out."""
    size = T * repeat
    scores = np.exp(np.random.default_rng(7).normal(size=(N, size, size)) * 2)
    shares = (scores / scores.sum(-1, keepdims=True)).astype("f4")
    shares[:, :, 1] = np.nan
    return shares


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("lines")
    (folder / "page.py").write_text(SCRIPT, encoding="utf-8")
    (folder / "app.py").write_text(HOSTED.format(page=str(folder / "page.py")), encoding="utf-8")
    server = Server(folder / "log.txt", script=str(folder / "app.py"))
    server.wait_until_it_listens()
    yield server
    server.stop()


@pytest.fixture
def figure(page: Page, hosted: Site) -> Locator:
    return opened(page, hosted, "/")


def opened(page: Page, site: Site, path: str) -> Locator:
    page.goto(site.url + path)
    figure = page.locator("figure.lines")
    expect(figure.locator(".scroll canvas")).to_have_attribute("data-row", re.compile(r"\d+"))
    return figure


def read(figure: Locator) -> list[str]:
    """The lines of the readout, without the marks that isolate labels."""
    texts = figure.locator(".readout > span").all_inner_texts()
    return [re.sub("[\u2068\u2069]", "", text).strip() for text in texts]


def point(figure: Locator, side: str, index: int) -> dict[str, float]:
    canvas = figure.locator(".scroll canvas")
    top, row = (float(canvas.get_attribute(f"data-{name}") or 0) for name in ("top", "row"))
    width = (canvas.bounding_box() or {})["width"]
    return {"x": 12 if side == "query" else width - 12, "y": top + (index + 0.5) * row}


def test_pointing_at_a_token_lists_its_strongest_partners(figure: Locator):
    canvas, values = figure.locator(".scroll canvas"), weights()
    for side, index in (("query", 3), ("key", 6), ("key", 1)):
        canvas.hover(position=point(figure, side, index))
        first, *heads = read(figure)
        assert first.startswith(f"{side} {index} “{LABELS[index]}”")
        for head, text in enumerate(heads):
            column = values[head, index] if side == "query" else values[head, :, index]
            order = [i for i in np.argsort(-column, kind="stable") if not np.isnan(column[i])][:5]
            assert text.startswith(f"{NAMES[head]}: ")
            shown = re.findall(r"(\d+) “[^”]*” ([\d.e-]+)", text)
            assert [int(i) for i, _ in shown] == order
            assert [np.float32(value) for _, value in shown] == [column[i] for i in order]
            assert ("hidden" in text) == (side == "query" or index == 1)
    canvas.page.mouse.move(0, 0)
    assert read(figure) == [""]


def test_the_keyboard_reads_every_pair_to_the_last_digit(figure: Locator, page: Page):
    values = weights()
    figure.locator(".scroll canvas").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter", "ArrowRight", "Home"):
        page.keyboard.press(key)
    for key in range(T):
        first, *heads = read(figure)
        assert first == f"query 2 “{LABELS[2]}” → key {key} “{LABELS[key]}”"
        for head, text in enumerate(heads):
            name, shown = text.split(": ")
            assert name == NAMES[head]
            if key == 1:
                assert shown == "hidden"
            else:
                assert np.float32(shown.removeprefix("weight ")) == values[head, 2, key]
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    assert read(figure) == [""]


def test_heads_are_switched_off_and_on_without_a_jump(figure: Locator, page: Page):
    canvas, below = figure.locator(".scroll canvas"), page.get_by_text("below", exact=True)
    before = below.bounding_box()

    def picture() -> str:
        return str(canvas.evaluate("canvas => canvas.toDataURL()"))

    all_on = picture()
    button = figure.get_by_role("button", name=NAMES[1])
    expect(button).to_have_attribute("aria-pressed", "true")
    button.focus()
    page.keyboard.press("Space")
    expect(button).to_have_attribute("aria-pressed", "false")
    assert picture() != all_on
    canvas.hover(position=point(figure, "query", 0))
    assert [text.split(":")[0] for text in read(figure)[1:]] == [NAMES[0], NAMES[2]]
    assert below.bounding_box() == before
    button.click()
    page.mouse.move(0, 0)
    assert picture() == all_on


def test_masked_pairs_have_no_number(page: Page, hosted: Site):
    figure = opened(page, hosted, "/?causal=1&repeat=5")
    canvas = figure.locator(".scroll canvas")
    # all of 45 tokens are seen at once
    assert figure.locator(".scroll").evaluate("e => e.scrollHeight - e.clientHeight") <= 0
    canvas.click(position=point(figure, "query", 2))
    canvas.hover(position=point(figure, "key", 5))
    (text,) = read(figure)
    assert text.startswith("query 2 “<b>x</b>” → key 5 “😀”: masked")


def test_a_long_text_scrolls_and_a_step_draws_the_lines_of_one_token(
    browser: Browser, hosted: Site
):
    page = browser.new_context(viewport={"width": 390, "height": 700}).new_page()
    figure = opened(page, hosted, "/?repeat=28")  # 252 tokens
    canvas = figure.locator(".scroll canvas")
    expect(figure.locator(".words")).to_contain_text("the 1200 largest of")
    canvas.focus()
    for key in ("ArrowDown", "End", "ArrowRight", "Home"):
        page.keyboard.press(key)
        expect(figure.locator(".cursor")).to_be_in_viewport()
    strokes = canvas.evaluate(
        """canvas => {
            const {prototype} = CanvasRenderingContext2D, {stroke} = prototype;
            let count = 0;
            prototype.stroke = function () { count += 1; stroke.call(this); };
            return Array.from({length: 9}, () => {
                count = 0;
                canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown"}));
                return count;
            });
        }"""
    )
    # of 63,504 pairs a head
    assert 0 < max(strokes) <= N * T * 28, strokes
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.context.close()


def test_the_picture_is_saved_as_svg_and_png(figure: Locator):
    file = download(figure, "SVG")
    assert file.suggested_filename == "L3H0-L3H4-L5H1-weights.svg"
    root = ET.fromstring(file.path().read_bytes())  # well-formed, or it raises
    svg = "{http://www.w3.org/2000/svg}"
    texts = [element.text for element in root.iter(f"{svg}text")]
    labels = [label.replace("\x08", "\ufffd") for label in LABELS]  # XML knows no backspace
    says = "Queries are on the left and keys are on the right. Each color is a head."
    start, end = texts.index("queries"), texts.index("keys") + 1 + len(labels)
    assert " ".join(map(str, texts[:start])) == f"Three heads: a <b>/.. {says}"
    assert texts[start:end] == ["queries", *labels, "keys", *labels]
    assert texts[end : end + len(NAMES)] == NAMES  # the legend
    drawn = weights() >= np.nanmax(weights()) / 255
    assert len(list(root.iter(f"{svg}path"))) == drawn.sum()
    background = root.find(f"{svg}rect")
    assert background is not None
    assert background.get("fill") == "#ffffff"
    file = download(figure, "PNG")
    assert file.suggested_filename.endswith(".png")
    png = io.BytesIO(file.path().read_bytes())
    assert png.read(8) == b"\x89PNG\r\n\x1a\n"
    size = struct.unpack(">II", png.read(16)[8:])
    # twice as fine as the page, whatever the screen
    assert list(size) == [2 * float(root.get(side) or 0) for side in ("width", "height")]
    canvas = figure.locator(".scroll canvas")
    wide, high = canvas.evaluate("canvas => [canvas.clientWidth, canvas.clientHeight]")
    assert size[0] >= 2 * wide
    assert size[1] > 2 * high
