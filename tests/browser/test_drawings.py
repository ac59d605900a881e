"""Test drawings on a custom page under the hosted site's security policy: lines and files.

Labels contain hostile text, and some pairs are masked. An SVG file stores labels as text. A PNG
file has twice the resolution of the page.
"""

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, Position, expect

from benchmarks.browser import Server, Site
from tests.helpers.browser import PHONE, download

N, T = 3, 9
HOSTILE = "</text><script>alert(1)</script>"
LABELS = ["[CLS]", "a&b", "<i>", "שלום", "x\x08y", "]]>", HOSTILE]
LINE_LABELS = ["[CLS]", "The", "<b>x</b>", "didn't", "שלום", "😀", "a&b", "\x08", "[SEP]"]
NAMES = ["L3H0", "L3H4", "L5H1"]
ABOUT = ["Model: Model One", f"Sentence: \u2068It is {HOSTILE}\u2069"]
PAGE = """
import streamlit as st
from tests.browser.test_drawings import draw, draw_lines
repeat = int(st.query_params.get("repeat", "0"))
draw_lines(repeat, causal="causal" in st.query_params) if repeat else draw()
st.text("the end")
"""
HOSTED = """
import streamlit as st
from starlette.middleware import Middleware
from web.security_headers import SecurityHeaders, security_headers
from ui.frame.page_assets import inline_scripts
headers = security_headers(inline_scripts())
app = st.App({page!r}, middleware=[Middleware(SecurityHeaders, headers)])
"""
SVG = "{http://www.w3.org/2000/svg}"


def weights(repeat: int = 1) -> np.ndarray:
    """Return softmax rows for N heads, with the pairs of key 1 masked."""
    size = T * repeat
    scores = np.exp(np.random.default_rng(7).normal(size=(N, size, size)) * 2)
    shares = (scores / scores.sum(-1, keepdims=True)).astype("f4")
    shares[:, :, 1] = np.nan
    return shares


def draw_lines(repeat: int, *, causal: bool) -> None:
    from ui.canvas.lines import lines

    title, labels = "Three heads: a <b>/..", LINE_LABELS * repeat
    lines(weights(repeat), NAMES, labels, title=title, causal=causal, key="k")


def draw() -> None:
    """Draw one of every other kind of drawing."""
    from ui.canvas.chips import Chip, chips
    from ui.canvas.component import picture_caption
    from ui.canvas.heatmap import heatmap
    from ui.canvas.shaded import ShadedToken, shaded_tokens
    from ui.canvas.tensors import tensors

    picture_caption().update(model="Model One", name="one", sentence=f"It is {HOSTILE}")
    tokens = [
        Chip(label, "detail", muted=i == 0, selected=i == 2, line_after=i == 3)
        for i, label in enumerate(LABELS)
    ]
    chips(tokens, title=f"Chips {HOSTILE}", key="chips")
    words = [
        ShadedToken(label, i / 10, "detail", is_future=i == 5) for i, label in enumerate(LABELS)
    ]
    title = f"Shaded {HOSTILE}"
    shaded_tokens(words, largest=0.6, square_root=True, title=title, hint="h", key="shaded")
    tensors(panels(), key="tensors")
    for size in SIZES:
        heatmap(map_of(size), key=f"map_of_{size}")


SIZES = (47, 400)  # a map of the larger size is painted as one image


def panels() -> list:
    """Return a batch of two named blocks with identities and a box, and a vector."""
    from ui.canvas.tensors import Panel

    values = np.arange(2 * 3 * 4).reshape(2, 3, 4) / 8 - 1
    note = "A note of so many words that it does not fit into one line of the picture. " * 2
    labels = {"rows": LABELS[4:], "columns": ["c0", "c1", "c2", "c3"], "blocks": ["first", HOSTILE]}
    axes = ("batch", "token", "column")
    cells = np.arange(24).reshape(2, 3, 4) % 6
    return [
        Panel(HOSTILE, values, axes, **labels, cells=cells, note=note, filled=(3, 3), box=(2, 3)),
        Panel("vector", np.array([0.5, np.nan, -np.inf, 2.0, 7.25]), ("column",)),
    ]


def map_of(size: int):
    from ui.canvas.heatmap import ColourScale, Map

    values = np.full((size, size), 0.5, "f4")
    labels = [f"{LABELS[i % len(LABELS)]}{i}" for i in range(size)]
    return Map(values, labels, title=f"Map of {size}", causal=False, scale=ColourScale(1.0))


@pytest.fixture(scope="module")
def hosted_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("drawings")
    (folder / "page.py").write_text(PAGE, encoding="utf-8")
    (folder / "app.py").write_text(HOSTED.format(page=str(folder / "page.py")), encoding="utf-8")
    server = Server(folder / "log.txt", script=str(folder / "app.py"))
    server.wait_until_it_listens()
    yield server
    server.stop()


# ---- heads drawn as lines


def lines_of(page: Page, site: Site, query: str) -> Locator:
    page.goto(f"{site.url}/?{query}")
    figure = page.locator("figure.lines")
    expect(figure.locator(".scroll canvas")).to_have_attribute("data-row", re.compile(r"\d+"))
    return figure


def read(figure: Locator) -> list[str]:
    """Return the lines of the readout without the bidi isolation marks around labels."""
    texts = figure.locator(".readout > span").all_inner_texts()
    return [re.sub("[\u2068\u2069]", "", text).strip() for text in texts]


def point(figure: Locator, side: str, index: int) -> Position:
    canvas = figure.locator(".scroll canvas")
    top, row = (float(canvas.get_attribute(f"data-{name}") or 0) for name in ("top", "row"))
    width = (canvas.bounding_box() or {})["width"]
    return {"x": 12 if side == "query" else width - 12, "y": top + (index + 0.5) * row}


def test_lines_can_be_read_switched_off_and_saved(page: Page, hosted_site: Site):
    figure = lines_of(page, hosted_site, "repeat=1")
    canvas, values = figure.locator(".scroll canvas"), weights()
    # pointing at a token lists the tokens it's most strongly connected to
    for side, index in (("query", 3), ("key", 6)):
        canvas.hover(position=point(figure, side, index))
        first, *heads = read(figure)
        assert first.startswith(f"{side} {index} “{LINE_LABELS[index]}”")
        for head, text in enumerate(heads):
            column = values[head, index] if side == "query" else values[head, :, index]
            order = [i for i in np.argsort(-column, kind="stable") if not np.isnan(column[i])][:5]
            pairs = re.findall(r"(\d+) “[^”]*” ([\d.e-]+)", text)
            assert [int(i) for i, _ in pairs] == order
            assert [np.float32(value) for _, value in pairs] == [column[i] for i in order]
    page.mouse.move(0, 0)
    assert read(figure) == [""]

    # the keyboard reaches every pair
    canvas.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter", "ArrowRight", "Home"):
        page.keyboard.press(key)
    for key in range(3):
        first, *heads = read(figure)
        assert first == f"query 2 “{LINE_LABELS[2]}” → key {key} “{LINE_LABELS[key]}”"
        for head, text in enumerate(heads):
            name, value = text.split(": ")
            assert name == NAMES[head]
            if key == 1:
                assert value == "hidden"
            else:
                assert np.float32(value.removeprefix("weight ")) == values[head, 2, key]
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    assert read(figure) == [""]

    # heads can be switched off and on
    all_on = canvas.evaluate("canvas => canvas.toDataURL()")
    button = figure.get_by_role("button", name=NAMES[1])
    button.focus()
    page.keyboard.press("Space")
    expect(button).to_have_attribute("aria-pressed", "false")
    assert canvas.evaluate("canvas => canvas.toDataURL()") != all_on
    canvas.hover(position=point(figure, "query", 0))
    assert [text.split(":")[0] for text in read(figure)[1:]] == [NAMES[0], NAMES[2]]
    button.click()
    page.mouse.move(0, 0)
    assert canvas.evaluate("canvas => canvas.toDataURL()") == all_on

    file = download(figure, "SVG")
    assert file.suggested_filename == "L3H0-L3H4-L5H1-weights.svg"
    root = ET.fromstring(file.path().read_bytes())  # raises if it isn't well-formed
    labels, message = [xml_text(label) for label in LINE_LABELS], texts(root)
    start = message.index("queries")
    assert message[start:][: 2 * T + 2 + N] == ["queries", *labels, "keys", *labels, *NAMES]
    drawn = values >= np.nanmax(values) / 255
    assert len(list(root.iter(f"{SVG}path"))) == drawn.sum()


def test_lines_of_a_long_text_on_a_phone(page: Page, hosted_site: Site):
    page.set_viewport_size(PHONE)
    figure = lines_of(page, hosted_site, "repeat=28&causal=1")  # 252 tokens
    canvas = figure.locator(".scroll canvas")
    expect(figure.locator(".words")).to_contain_text("the 1200 largest of")
    canvas.click(position=point(figure, "query", 2))
    canvas.hover(position=point(figure, "key", 5))
    assert read(figure) == [
        "query 2 “<b>x</b>” → key 5 “😀”: masked, because the key comes after the query"
    ]
    page.mouse.move(0, 0)
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
    assert 0 < max(strokes) <= N * T * 28  # only the lines of one token, not all 63,504
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


# ---- files of the other kinds of drawings


@pytest.fixture
def drawings(page: Page, hosted_site: Site) -> Page:
    page.goto(hosted_site.url)
    expect(page.get_by_text("the end", exact=True)).to_be_visible()
    expect(page.locator(".drawing")).to_have_count(5)
    return page


def svg_and_png(drawing: Locator) -> tuple[ET.Element, Image.Image]:
    """Download both files and check that the PNG has two pixels per SVG unit on each side."""
    drawing.scroll_into_view_if_needed()
    svg, png = download(drawing, "SVG"), download(drawing, "PNG")
    assert svg.suggested_filename.startswith("one-")
    root = ET.fromstring(svg.path().read_bytes())  # raises if it isn't well-formed
    image = Image.open(io.BytesIO(png.path().read_bytes())).convert("RGB")
    assert image.size == tuple(
        round(2 * float(root.get(side) or 0)) for side in ("width", "height")
    )
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "defs", "rect", "g", "text", "path", "image", "clipPath"}  # no scripts
    return root, image


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def head_and_rest(drawing: Locator, root: ET.Element, title: str) -> tuple[int, list[str]]:
    """Return how many lines of text are above the drawing, and all other text.

    The lines above are the title, the description, the model and the text, which may wrap. So only
    their letters are compared.
    """
    button = drawing.get_by_role("button", name="How to read this")
    button.click()
    how_to_read = drawing.locator(".help p").first.inner_text()
    button.click()
    head = "".join([title, how_to_read, *ABOUT]).replace(" ", "")
    message = texts(root)
    lines = next(n for n in range(len(message)) if "".join(message[:n]).replace(" ", "") == head)
    return lines, message[lines:]


def xml_text(label: str) -> str:
    """Remove backspaces, which XML can't represent."""
    return label.replace("\x08", "\ufffd")


def colours(image: Image.Image) -> set[tuple[int, ...]]:
    return {colour for _, colour in image.getcolors(1 << 20) or []}  # type: ignore[misc]


def test_chips_and_shaded_text_are_saved(drawings: Page):
    chips = drawings.locator("figure.chips")
    root, png = svg_and_png(chips)
    assert head_and_rest(chips, root, f"Chips {HOSTILE}")[1] == [*map(xml_text, LABELS)]
    fills = {element.get("fill") for element in root.iter(f"{SVG}rect")}
    assert {"#0072b2", "#d55e00", "#009e73", "#c46a9b"} <= fills
    assert len(colours(png)) > 20

    shaded = drawings.locator("figure.shaded")
    root, png = svg_and_png(shaded)
    # token 5 isn't generated yet, so it's left out
    displayed = [xml_text(label) for i, label in enumerate(LABELS) if i != 5]
    message = head_and_rest(shaded, root, f"Shaded {HOSTILE}")[1]
    assert message[: len(displayed) + 2] == [*displayed, "0", "0.6"]
    assert (253, 231, 37) in colours(png)  # the color of the largest share


def test_tensors_are_saved(drawings: Page):
    drawing = drawings.locator(".tensors").first
    root, png = svg_and_png(drawing)
    message = head_and_rest(drawing, root, "")[1]
    assert message[:2] == [HOSTILE, "batch of 2 × 3 tokens × 4 columns; drawn: 3 × 3"]
    assert {"batch 0 first", "vector", "5 columns", "−0.50", "nan", "−∞", "7.25"} <= set(message)

    # the note wraps onto several lines of at most 540 pixels
    assert "".join(message).count("so many words") == 2
    assert not [text for text in message if len(text) > 120]
    # cells have the same colors as on the page
    for canvas in drawing.locator("canvas").all():
        on_page = canvas.evaluate(
            """canvas => { const pixels = canvas.getContext("2d")
                .getImageData(0, 0, canvas.width, canvas.height).data, found = {};
                for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] === 255) {
                  const key = pixels.slice(i, i + 3).join(); found[key] = (found[key] || 0) + 1; }
                return Object.keys(found).filter((key) => found[key] > 60); }"""
        )
        assert on_page
        assert set(on_page) <= {",".join(map(str, colour)) for colour in colours(png)}


@pytest.mark.parametrize("size", SIZES)
def test_map_is_below_its_title_in_a_png(drawings: Page, size: int):
    drawing = drawings.locator("figure.heatmap").filter(has_text=f"Map of {size}")
    canvas = drawing.locator(".scroll canvas")
    expect(canvas).to_have_attribute("data-top", re.compile("."))
    top, cell, origin = (
        float(canvas.get_attribute(f"data-{name}") or 0) for name in ("top", "cell", "origin")
    )
    root, png = svg_and_png(drawing)
    above, message = head_and_rest(drawing, root, f"Map of {size}")
    assert message[-3:] == ["0", "1 (middle: 0.5)", "weights"]
    if size == SIZES[0]:  # no row or column label is dropped to make space for another
        assert message.count(xml_text(map_of(size).labels[-1])) == 2
    head = 16 * above + 6  # each line above the map is 16 pixels high
    middle = round(2 * (origin + (size // 2 + 0.4) * cell))
    column = [png.getpixel((middle, y)) for y in range(png.height)]
    half = (38, 130, 142)  # the midpoint of viridis
    first, last = column.index(half), len(column) - 1 - column[::-1].index(half)
    assert first == pytest.approx(2 * (head + top), abs=2)
    assert last == pytest.approx(2 * (head + top + size * cell), abs=4)


def test_dark_page_is_saved_dark(own_page: Page, hosted_site: Site):
    own_page.emulate_media(color_scheme="dark")
    own_page.goto(hosted_site.url)
    for name in ("chips", "shaded", "tensors"):
        root, png = svg_and_png(own_page.locator(f".{name}").first)
        background = root.find(f"{SVG}rect")
        assert background is not None
        colour = bytes.fromhex((background.get("fill") or "").removeprefix("#"))
        assert max(colour) < 60
        assert png.getpixel((0, 0)) == tuple(colour)
        assert {element.get("fill") for element in root.iter(f"{SVG}text")} & {"#fafafa", "#e4e9ee"}
