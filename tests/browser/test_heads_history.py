"""Test how a head forms during training: moving the slider by keyboard changes the maps."""

import re
import urllib.parse

import pytest
from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from pages.compare.heads.history import ITS_MAP, TITLE
from pretrained.history import history
from tests.helpers.browser import (
    expect_parameter,
    heatmap,
    last_number,
    open_page,
    press,
    read_cell,
    slider,
)
from tests.helpers.bundled_models import ENCODER
from tests.helpers.visitors import wait_until_settled


def test_main_path(page: Page, site: Site):
    gpt2 = history("gpt2-novels")
    assert gpt2 is not None
    query = {
        "heads_text": "A cat sat",
        "heads_model": ENCODER,
        "heads_part": TITLE,
        "heads_history_head": "L1H2",
        "heads_history_beside": ITS_MAP,
    }
    open_page(page, site, f"/heads?{urllib.parse.urlencode(query)}", "Heads")
    last, before = (int(step) for step in (gpt2.steps[-1], gpt2.steps[-2]))
    expect(heatmap(page, f"L1H2, step {last:,}")).to_be_visible()
    press(slider(page, "Training step"), "ArrowLeft")
    expect_parameter(page, "heads_history_step", str(before))
    large = heatmap(page, f"L1H2, step {before:,}")
    wait_until_settled(page)
    weights = gpt2.probes[0].weights(len(gpt2.steps) - 2)
    displayed = last_number(read_cell(large, 9, 4))
    assert displayed == pytest.approx(float(weights[1, 2, 9, 4]), abs=1e-5)
    figure = page.locator("figure.mosaic").filter(has_text=f"step {before:,}:")
    press(figure.locator(".scroll canvas"), "ArrowRight")
    expect(figure.locator(".readout")).to_have_text(re.compile(r"^L\d+H\d+: .*%$"))
    page.reload()
    expect(large).to_be_visible()
