"""Steps of a visitor in a real browser: open a page, type, move a slider, read a picture."""

import re

import torch
from playwright.sync_api import (
    Locator,
    Page,
    ViewportSize,
    expect,
)

from benchmarks.browser import Site
from pretrained import Tokens
from tests.helpers.bundled_models import bundled

PHONE: ViewportSize = {"width": 390, "height": 844}
PAINT_SECONDS = 60  # for whatever is no claim about speed: the machine may be busy
SENTENCE = "Seven small ships sailed past the old lighthouse"
ENCODER = "all-minilm-l6-v2"
DECODER = "smollm2-135m-instruct"


def weights(name: str, text: str, layer: int, head: int) -> tuple[torch.Tensor, Tokens]:
    model = bundled(name)
    tokens = model.tokenizer.encode(text)
    with torch.inference_mode():
        record = model.core(torch.tensor([tokens.ids]), record=True).records[layer]
    return record.weights[0, head], tokens


def open_page(page: Page, site: Site, path: str, heading: str) -> None:
    page.goto(site.url + path)
    expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()


def settled(page: Page) -> None:
    """Wait for the end of the run that has begun to paint: what is pressed is then of that run."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def type_text(page: Page, label: str, text: str) -> None:
    page.get_by_label(label, exact=True).fill(text)
    page.keyboard.press("Control+Enter")


def set_slider(page: Page, label: str, which: int, steps: int) -> None:
    """Move a slider with the keyboard, as a visitor without a mouse does."""
    slider = page.get_by_test_id("stSlider").filter(has_text=label).nth(which)
    expect(slider.locator("input")).to_be_enabled()  # what was clicked before may enable it
    slider.locator("input").focus()
    for _ in range(abs(steps)):
        page.keyboard.press("ArrowRight" if steps > 0 else "ArrowLeft")


def heatmap(page: Page, title: str) -> Locator:
    return page.locator("figure.heatmap").filter(has_text=title)


def read_cell(figure: Locator, row: int, column: int) -> str:
    """Hover the middle of a cell and read what the page then says."""
    canvas = figure.locator(".scroll canvas")
    canvas.scroll_into_view_if_needed()
    origin, cell = (float(canvas.get_attribute(f"data-{name}") or 0) for name in ("origin", "cell"))
    x, y = (origin + (index + 0.5) * cell for index in (column, row))
    canvas.hover(position={"x": x, "y": y})
    return readout(figure)


def readout(figure: Locator) -> str:
    """What is read, without the marks that keep right-to-left labels in their place."""
    return re.sub("[\u2068\u2069]", "", figure.locator(".readout").inner_text())


PATHS = [
    "/",
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
    "/ladder",
    "/shapes",
    "/masking",
    "/scaling",
    "/against-pytorch",
    "/block",
    "/tokens",
]
