"""Every kind of drawing as a file: the SVG holds its labels as text, the PNG is twice as fine."""

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Server, Site
from tests.helpers.browser import download

HOSTILE = "</text><script>alert(1)</script>"
LABELS = ["[CLS]", "a&b", "<i>", "שלום", "x\x08y", "]]>", HOSTILE]
SCRIPT = """
import streamlit as st
from tests.browser.test_saving import HOSTILE, LABELS, map_of, panels
from ui.canvas.chips import Chip, chips
from ui.canvas.component import about
from ui.canvas.heatmap import heatmap
from ui.canvas.shaded import Shaded, shaded
from ui.canvas.tensors import tensors

about().update(model="Model One", name="one", sentence=f"It is {HOSTILE}")
tokens = [Chip(label, "detail", quiet=i == 0, chosen=i == 2, line_after=i == 3)
          for i, label in enumerate(LABELS)]
chips(tokens, title=f"Chips {HOSTILE}", key="chips")
words = [Shaded(label, i / 10, "detail", framed=["", "asks", "chosen"][i % 3], later=i == 5)
         for i, label in enumerate(LABELS)]
shaded(words, largest=0.6, square_root=True, title=f"Shaded {HOSTILE}", hint="h", key="shaded")
tensors(panels(), key="tensors")
tensors(panels()[:1], key="identities", colour="identity", palette=(2, 3))
heatmap(map_of(47), key="map_of_47")
heatmap(map_of(400), key="map_of_400")
st.text("the end")
"""
SVG = "{http://www.w3.org/2000/svg}"


def panels() -> list:
    """A batch of two named blocks with identities and a box, and a vector."""
    from ui.canvas.tensors import Panel

    values = np.arange(2 * 3 * 4).reshape(2, 3, 4) / 8 - 1
    note = "A note of so many words that it does not fit into one line of the picture. " * 2
    rows = LABELS[4:]
    labels = {"rows": rows, "columns": ["c0", "c1", "c2", "c3"], "blocks": ["first", HOSTILE]}
    axes = ("batch", "token", "column")
    cells = np.arange(24).reshape(2, 3, 4) % 6
    return [
        Panel(HOSTILE, values, axes, **labels, cells=cells, note=note, filled=(3, 3), box=(2, 3)),
        Panel("vector", np.array([0.5, np.nan, -np.inf, 2.0, 7.25]), ("column",)),
    ]


def map_of(size: int):
    from ui.canvas.heatmap import ColourScale, Map

    weights = np.full((size, size), 0.5, "f4")
    labels = [f"{LABELS[i % len(LABELS)]}{i}" for i in range(size)]
    return Map(weights, labels, title=f"Map of {size}", causal=False, scale=ColourScale(1.0))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("saving")
    (folder / "page.py").write_text(SCRIPT, encoding="utf-8")
    server = Server(folder / "log.txt", script=str(folder / "page.py"))
    server.wait_until_it_listens()
    yield server
    server.stop()


@pytest.fixture
def drawings(page: Page, pictures: Site) -> Page:
    page.goto(pictures.url)
    expect(page.get_by_text("the end", exact=True)).to_be_visible()
    expect(page.locator(".drawing")).to_have_count(6)
    return page


ABOUT = ["Model: Model One", f"Sentence: \u2068It is {HOSTILE}\u2069"]


def saved(drawing: Locator, kind: str, name: str = "") -> bytes:
    drawing.scroll_into_view_if_needed()
    file = download(drawing, kind)
    assert file.suggested_filename.startswith("one-")
    assert file.suggested_filename.endswith(f"{name}.{kind.lower()}")
    return file.path().read_bytes()


def svg_and_png(drawing: Locator, name: str = "") -> tuple[ET.Element, Image.Image]:
    """Both files; the PNG has twice as many pixels on each side as the SVG has units."""
    root = ET.fromstring(saved(drawing, "SVG", name))  # well-formed, or it raises
    png = Image.open(io.BytesIO(saved(drawing, "PNG", name))).convert("RGB")
    assert png.size == (
        round(2 * float(root.get("width") or 0)),
        round(2 * float(root.get("height") or 0)),
    )
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg",
        "defs",
        "rect",
        "g",
        "text",
        "path",
        "image",
        "clipPath",
    }  # and no script
    return root, png


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def without_head(drawing: Locator, root: ET.Element, title: str) -> list[str]:
    """All texts but those above the drawing: its title, what it shows, the model, the sentence.

    Those are wrapped: what is compared are their letters.
    """
    head = "".join([title, how_to_read(drawing), *ABOUT]).replace(" ", "")
    said = texts(root)
    lines = next(n for n in range(len(said)) if "".join(said[:n]).replace(" ", "") == head)
    return said[lines:]


def how_to_read(drawing: Locator) -> str:
    """What a drawing says that it shows."""
    button = drawing.get_by_role("button", name="How to read this")
    button.click()
    said = drawing.locator(".help p").first.inner_text()
    button.click()
    expect(drawing.locator(".help")).to_be_hidden()
    return said


def written(label: str) -> str:
    """XML knows no backspace."""
    return label.replace("\x08", "\ufffd")


def test_chips_are_saved(drawings: Page):
    drawing = drawings.locator("figure.chips")
    root, png = svg_and_png(drawing)
    assert without_head(drawing, root, f"Chips {HOSTILE}") == [*map(written, LABELS)]
    fills = {element.get("fill") for element in root.iter(f"{SVG}rect")}
    assert {"#0072b2", "#d55e00", "#009e73", "#c46a9b"} <= fills
    assert len(png.getcolors(1 << 20) or []) > 20


def test_a_shaded_text_is_saved(drawings: Page):
    drawing = drawings.locator("figure.shaded")
    root, png = svg_and_png(drawing)
    shown = [written(label) for i, label in enumerate(LABELS) if i != 5]  # that one comes later
    said = without_head(drawing, root, f"Shaded {HOSTILE}")
    assert said[: len(shown)] == shown
    assert said[len(shown) :][:3] == [
        "0",
        "0.6",
        "weight (color and bar, square-root scale)",
    ]
    assert "Solid frame: the query" in " ".join(said[len(shown) :])
    shares = [
        float(element.get("width") or 0)
        for element in root.iter(f"{SVG}rect")
        if element.get("fill") == "#d55e00"
    ]
    boxes = drawings.locator(".token").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect().width)"
    )
    parts = [np.sqrt(i / 6) for i in range(len(LABELS)) if i not in (0, 5)]  # no bar for a 0
    wide = [boxes[i] for i in range(len(LABELS)) if i not in (0, 5)]
    assert shares == pytest.approx([p * w for p, w in zip(parts, wide, strict=True)], abs=0.01)
    assert (253, 231, 37) in {colour for _, colour in png.getcolors(1 << 20) or []}  # a full share


def test_tensors_are_saved(drawings: Page):
    drawing = drawings.locator(".tensors").first
    root, png = svg_and_png(drawing)
    said = without_head(drawing, root, "")
    assert said[:2] == [HOSTILE, "batch of 2 × 3 tokens × 4 columns; drawn: 3 × 3"]
    assert said[-2:] == ["negative", "positive (each tensor has its own scale)"]
    assert {"batch 0 first", "vector", "5 columns", "−0.50", "nan", "−∞", "7.25"} <= set(said)
    assert said.count("c0") == 2
    assert sum(text in LABELS[4:] or text == "x\ufffdy" for text in said) >= 4
    assert "".join(said).count("so many words") == 2  # the note, on more than one line
    assert not [text for text in said if len(text) > 120]  # more do not fit into its 540 pixels
    # the colours of the cells are those of the page
    for canvas in drawing.locator("canvas").all():
        on_page = canvas.evaluate(
            """canvas => { const pixels = canvas.getContext("2d")
                .getImageData(0, 0, canvas.width, canvas.height).data, found = {};
                for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] === 255) {
                  const key = pixels.slice(i, i + 3).join(); found[key] = (found[key] || 0) + 1; }
                return Object.keys(found).filter((key) => found[key] > 60); }"""
        )
        assert on_page
        in_file = {",".join(map(str, colour)) for _, colour in png.getcolors(1 << 20) or []}
        assert set(on_page) <= in_file


def test_a_map_of_many_tokens_lies_below_its_title_in_a_png(drawings: Page):
    """Its cells are painted as one image, the others one by one."""
    for size in (47, 400):
        drawing = drawings.locator("figure.heatmap").filter(has_text=f"Map of {size}")
        canvas = drawing.locator(".scroll canvas")
        expect(canvas).to_have_attribute("data-top", re.compile("."))
        top, cell = (float(canvas.get_attribute(f"data-{name}") or 0) for name in ("top", "cell"))
        origin = float(canvas.get_attribute("data-origin") or 0)
        root, png = svg_and_png(drawing, f"Map-of-{size}-weights")
        *_, low, ends, unit = without_head(drawing, root, f"Map of {size}")
        assert (low, ends, unit) == ("0", "1 (middle: 0.5)", "weights")
        # the lines above the map are 16 pixels high each
        above = len(texts(root)) - len(without_head(drawing, root, f"Map of {size}"))
        head = 16 * above + 6
        if size == 47:  # no label of a row or a column gives way to another
            written_labels = [written(label) for label in map_of(47).labels]
            assert texts(root).count(written_labels[46]) == 2
            assert sum(text[0] in "[a<שx]…" for text in texts(root)[above:-3]) >= 2 * 40
        middle = round(2 * (origin + (size // 2 + 0.4) * cell))
        column = [png.getpixel((middle, y)) for y in range(png.height)]
        half = (38, 130, 142)  # viridis in its middle
        first, last = column.index(half), len(column) - 1 - column[::-1].index(half)
        assert first == pytest.approx(2 * (head + top), abs=2)
        assert last == pytest.approx(2 * (head + top + size * cell), abs=4)


def test_a_dark_page_is_saved_dark(own_page: Page, pictures: Site):
    own_page.emulate_media(color_scheme="dark")
    own_page.goto(pictures.url)
    for name in ("chips", "shaded", "tensors"):
        root, png = svg_and_png(own_page.locator(f".{name}").first)
        background = root.find(f"{SVG}rect")
        assert background is not None
        red, green, blue = (int((background.get("fill") or "")[i : i + 2], 16) for i in (1, 3, 5))
        assert max(red, green, blue) < 60
        assert png.getpixel((0, 0)) == (red, green, blue)
        assert {element.get("fill") for element in root.iter(f"{SVG}text")} & {"#fafafa", "#e4e9ee"}
