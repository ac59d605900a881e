"""Similarity in a real browser: another word, a part, a dimension by the keyboard, the link."""

import re

import pytest
import torch
from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    exact,
    expect_next_page,
    expect_parameter,
    heatmap,
    open_page,
    plain,
    press,
    read_by_keyboard,
    set_slider,
)
from tests.helpers.bundled_models import DECODER, bundled
from tests.helpers.visitors import settled
from ui.widgets import controls

QUERIES = "SmolLM2 135M, L13H8: softmax, dim=-2"


def share_of_the_first_token() -> float:
    """What token 0 gives to query 0 where it is divided among the queries, without the site."""
    model = bundled(DECODER)
    ids = torch.tensor([model.tokenizer.encode(controls.ANIMAL).ids])
    with torch.inference_mode():
        record = model.core(ids, record=True).records[13]
    scores = record.q[0, 8] @ record.k[0, 8 // 3].T * record.scale
    return float(torch.softmax(scores[:, 0], dim=0)[0])


def test_the_main_path(page: Page, site: Site):
    open_page(page, site, "/similarity", "Similarity")
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg")).to_have_count(3)
    expect(heatmap(page, "softmax(x·xᵀ)")).to_be_visible()
    products = page.get_by_test_id("stText").first
    expect(products).to_contain_text("tired")
    set_slider(page, "Word", 0, -3)  # tired -> it
    expect_parameter(page, "similarity_word", "8")
    expect(products).to_contain_text(re.compile("^“\u2068it\u2069” · "))

    press(page.get_by_role("radio", name="Which dim?"), "Space")
    press(page.get_by_role("radio", name="dim=-2"), "Space")
    figure = heatmap(page, QUERIES)
    expect(figure).to_be_visible()
    press(figure.locator(".scroll canvas"), "Home")
    read_by_keyboard(figure, "“The” → “The”")
    assert exact(figure) == pytest.approx(share_of_the_first_token(), abs=1e-5)
    expect_next_page(page, "Ladder")

    settled(page)
    page.reload()
    expect(heatmap(page, QUERIES)).to_be_visible()
    settled(page)
    products = page.get_by_test_id("stText").first
    assert plain(products.inner_text()).startswith("“it” · ")
