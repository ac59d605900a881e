"""The offline page in a browser whose network is cut: it asks for nothing and answers."""

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from pages.compare.heads.offline import OfflineComponent, page
from tests.helpers.browser import last_number, press, read_cell
from tests.helpers.visitors import visitor
from ui.canvas import heatmap

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
    return np.random.default_rng(head).dirichlet(np.ones(5), 5).astype("f4")


def map_data(head: int) -> bytes:
    scale = heatmap.ColourScale(1.0)
    title = f"Head {head}"
    return heatmap.pack(heatmap.Map(weights(head), LABELS, title=title, causal=False, scale=scale))


def test_one_part_opens_what_another_shows(browser: Browser, tmp_path: Path):
    buttons = "".join(f"<button value={head}>Open head {head}</button>" for head in range(3))
    heads = {head: map_data(head) for head in range(2)}
    missing = "Head 2 is not in this file."
    figure_of_a_head = OfflineComponent.of(
        heatmap.canvas, heads[0], follows="open", variants=heads, missing=missing
    )
    file = tmp_path / "heads.html"
    parts = [OfflineComponent(buttons, "", CHOOSER, {}), figure_of_a_head]
    file.write_text(page(HOSTILE, parts, notes=[HOSTILE]), encoding="utf-8")
    with browser.new_context(offline=True) as context, visitor(context) as offline:
        requests: list[str] = []
        complaints: list[str] = []
        offline.on("request", lambda request: requests.append(request.url))
        offline.on("console", lambda message: complaints.append(message.text))
        offline.goto(file.as_uri())
        assert offline.title() == HOSTILE
        figure = offline.locator("figure.heatmap")
        press(offline.get_by_role("button", name="Open head 1"), "Enter")
        expect(figure.locator(".title")).to_have_text("Head 1")
        shown = last_number(read_cell(figure, 2, 2))
        assert shown == pytest.approx(float(weights(1)[2, 2]), rel=1e-5)
        offline.get_by_role("button", name="Open head 2").click()
        expect(offline.get_by_role("status").filter(has_text=missing)).to_be_visible()
        expect(figure.locator(".title")).to_have_text("Head 1")
    assert requests == [file.as_uri()]
    assert complaints == []
