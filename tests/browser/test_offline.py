"""The offline page in a browser whose network is cut: it asks for nothing and answers."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from pages.compare.heads.offline import OfflineComponent, page
from tests.helpers.browser import download, last_number, read_cell
from tests.helpers.visitors import tell_when_settled
from ui.canvas import heatmap, lines

pytestmark = pytest.mark.browser

HOSTILE = "</script><img src='https://example.com/x' onerror='document.title=1'>"
LABELS = ["[CLS]", HOSTILE, "שלום", "😀", "[SEP]"]
CHOOSER = """
export default function ({ parentElement, setTriggerValue }) {
  for (const button of parentElement.querySelectorAll("button")) {
    button.onclick = () => setTriggerValue("open", Number(button.value));
  }
}
"""


def weights(head: int) -> np.ndarray:
    scores = np.exp(np.random.default_rng(head).normal(size=(5, 5)) * 2)
    return (scores / scores.sum(-1, keepdims=True)).astype("f4")


def map_data(head: int) -> bytes:
    scale = heatmap.ColourScale(1.0)
    title = f"Head {head}"
    return heatmap.pack(heatmap.Map(weights(head), LABELS, title=title, causal=False, scale=scale))


def parts() -> list[OfflineComponent]:
    buttons = "".join(f"<button value={head}>Open head {head}</button>" for head in range(3))
    heads = {head: map_data(head) for head in range(2)}
    line_data = lines.pack(
        np.stack([weights(0), weights(1)]), ["a", "b"], LABELS, title="Lines", causal=False
    )
    return [
        OfflineComponent(buttons, "", CHOOSER, {}),
        OfflineComponent.of(
            heatmap.canvas,
            heads[0],
            follows="open",
            variants=heads,
            missing="Head 2 is not in this file.",
        ),
        OfflineComponent.of(lines.canvas, line_data),
    ]


@pytest.fixture
def offline(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """The page opened from a file, without a network; requests and complaints fail the test."""
    file = tmp_path / "heads.html"
    file.write_text(page(HOSTILE, parts(), notes=[HOSTILE]), encoding="utf-8")
    context = browser.new_context(viewport={"width": 390, "height": 900}, color_scheme="dark")
    context.set_offline(True)
    opened = context.new_page()
    tell_when_settled(opened)
    requests: list[str] = []
    complaints: list[str] = []
    opened.on("request", lambda request: requests.append(request.url))
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(file.as_uri())
    yield opened
    outside = [url for url in requests if not url.startswith(("data:", "blob:"))]
    context.close()
    assert outside == [file.as_uri()]
    assert complaints == []


def test_the_pictures_are_painted_and_read_the_exact_values(offline: Page):
    figure = offline.locator("figure.heatmap")
    for row, column in ((0, 3), (4, 1)):
        shown = last_number(read_cell(figure, row, column))
        assert shown == pytest.approx(float(weights(0)[row, column]), rel=1e-5)
    for canvas in offline.locator("figure .scroll canvas").all():
        colours = canvas.evaluate(
            """canvas => new Set(new Uint32Array(canvas.getContext("2d").getImageData(
               0, 0, canvas.width, canvas.height).data.buffer)).size"""
        )
        assert colours > 10
    offline.locator("figure.lines .scroll canvas").focus()
    for key in ("ArrowDown", "Enter", "ArrowRight", "End"):
        offline.keyboard.press(key)
    text = offline.locator("figure.lines .readout").inner_text()
    shown = [np.float32(value) for value in re.findall(r"[ab]: weight ([\d.e-]+)", text)]
    assert shown == [weights(0)[0, 4], weights(1)[0, 4]]
    assert offline.title() == HOSTILE
    assert offline.evaluate("document.documentElement.scrollWidth") <= 390


def test_one_part_opens_what_another_shows(offline: Page):
    figure = offline.locator("figure.heatmap")
    offline.get_by_role("button", name="Open head 1").focus()
    offline.keyboard.press("Enter")
    expect(figure.locator(".title")).to_have_text("Head 1")
    shown = last_number(read_cell(figure, 2, 2))
    assert shown == pytest.approx(float(weights(1)[2, 2]), rel=1e-5)
    offline.get_by_role("button", name="Open head 2").click()
    expect(offline.get_by_role("status").filter(has_text="Head 2 is not")).to_be_visible()
    expect(figure.locator(".title")).to_have_text("Head 1")


def test_pictures_are_saved_without_a_network(offline: Page):
    text = download(offline.locator("figure.lines"), "SVG").path().read_text(encoding="utf-8")
    assert 'fill="#0b0e12"' in text  # the dark theme's background
    assert "שלום" in text
