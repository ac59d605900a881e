"""Why several heads in a real browser: a row chosen by keyboard, heads, parts, the link."""

import re

import pytest
import torch
from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    choose,
    click,
    exact,
    heatmap,
    open_page,
    press,
    read_by_keyboard,
    set_slider,
    type_text,
)
from tests.helpers.bundled_models import ENCODER, bundled

TEXT = "Seven small ships sailed past"


def maps_of(layer: int) -> torch.Tensor:
    """The weights of all heads of a layer (H, T, T), without the site's code."""
    model = bundled(ENCODER)
    with torch.inference_mode():
        ids = torch.tensor([model.tokenizer.encode(TEXT).ids])
        return model.core(ids, record=True).records[layer].weights[0]


def test_the_main_path(page: Page, site: Site, other: Page):
    path = f"/why-several-heads?why_several_heads_model={ENCODER}"
    open_page(page, site, path, "Why several heads")
    type_text(page, "Text", TEXT)
    weights = maps_of(3)[[7, 11]]
    average = heatmap(page, "average of both heads")
    press(
        average.locator(".scroll canvas"), *["ArrowUp"] * 3, "ArrowRight"
    )  # the first shows the framed row
    # a cell that is read is framed and read in the maps of both heads too
    read_by_keyboard(average, "“ships” → “seven”")
    assert exact(average) == pytest.approx(float(weights.mean(dim=0)[3, 1]), abs=1e-5)
    read_by_keyboard(heatmap(page, "L3H11"), "“ships” → “seven”")
    assert exact(heatmap(page, "L3H11")) == pytest.approx(float(weights[1, 3, 1]), abs=1e-5)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("why_several_heads_token=3"))
    expect(page.get_by_text(re.compile("ships.* attends most to"))).to_be_visible()

    set_slider(page, "Second head", 0, -1)  # 11 -> 10
    expect(heatmap(page, "L3H10")).to_be_visible()
    click(page.get_by_role("radio", name="Left with one head"))
    choose(page.get_by_role("combobox", name="Compare heads of layer"), "2")
    expect(page.get_by_text("25 runs took")).to_be_visible()
    expect(
        page.get_by_text(re.compile("left in layer 2, the final vectors change"))
    ).to_be_visible()
    expect(page).to_have_url(re.compile("why_several_heads_compared=2"))

    other.goto(page.url)
    expect(heatmap(other, "L3H10")).to_be_visible()
    expect(
        other.get_by_text(re.compile("left in layer 2, the final vectors change"))
    ).to_be_visible()
    expect(other.get_by_text(re.compile("ships.* attends most to"))).to_be_visible()

    click(page.get_by_role("radio", name="The split in code"))
    shapes = page.get_by_role("link", name="Every step, cell by cell")
    words = TEXT.replace(" ", r"(\+|%20)")
    expect(shapes).to_have_attribute("href", re.compile(rf"shapes\?.*shapes_words={words}"))
