"""How a head came to be, in a real browser: the slider by the keyboard changes the maps."""

import re
import urllib.parse

from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from pages.compare.heads.history import ITS_MAP, TITLE
from pretrained.history import History, history
from tests.helpers.browser import (
    exact,
    expect_parameter,
    heatmap,
    last_number,
    open_page,
    press,
    read_cell,
    slider,
)
from tests.helpers.bundled_models import ENCODER
from tests.helpers.visitors import settled


def kept(name: str) -> History:
    found = history(name)
    assert found is not None
    return found


def all_heads(page: Page, title: str) -> Locator:
    """The mosaic of the part with this title, painted."""
    figure = page.locator("figure.mosaic").filter(has_text=title)
    expect(figure.locator(".scroll canvas")).to_have_attribute("data-painted", re.compile("."))
    settled(page)
    return figure


def test_the_slider_by_keyboard_changes_the_maps(page: Page, site: Site, other: Page):
    gpt2 = kept("gpt2-novels")
    query = {
        "heads_text": "A cat sat",
        "heads_model": ENCODER,
        "heads_part": TITLE,
        "heads_history_head": "L1H2",
        "heads_history_beside": ITS_MAP,
    }
    open_page(page, site, f"/heads?{urllib.parse.urlencode(query)}", "Heads")
    last = len(gpt2.steps) - 1
    all_heads(page, f"step {gpt2.steps[last]:,}:")
    for number in (last, last - 1):
        step = int(gpt2.steps[number])
        if number != last:
            press(slider(page, "Training step"), "ArrowLeft")
            expect_parameter(page, "heads_history_step", str(step))
        large = heatmap(page, f"L1H2, step {step:,}")
        expect(large).to_be_visible()
        weights = gpt2.probes[0].weights(number)
        shown = last_number(read_cell(large, 9, 4))
        assert abs(shown - float(weights[1, 2, 9, 4])) < 1e-5
        figure = all_heads(page, f"step {step:,}:")
        press(figure.locator(".scroll canvas"), "ArrowRight")
        said = figure.locator(".readout")
        expect(said).to_have_text(re.compile(r"^L\d+H\d+: .*%$"))
        layer, which = map(int, re.findall(r"\d+", said.inner_text())[:2])
        row, column = map(int, (said.get_attribute("data-cell") or "").split())
        expected = float(weights[layer, which, row, column])
        assert abs(exact(figure) - expected) <= gpt2.probes[0].error
    # the link restores the model, the step and the head
    other.goto(page.url)
    expect(heatmap(other, f"L1H2, step {int(gpt2.steps[last - 1]):,}")).to_be_visible()
