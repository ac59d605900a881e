"""Why attention in a real browser: a sentence, the controls, a measurement, the link."""

import re

import torch
from playwright.sync_api import Locator, Page, expect
from torch import nn

from benchmarks.browser import Site
from pages.learn.why_attention.experiment import word_vectors
from tests.helpers.browser import (
    SENTENCE,
    click,
    open_page,
    open_whole_page,
    set_slider,
    settings,
    type_text,
)
from tests.helpers.visitors import settled


def metric(page: Page, label: str) -> Locator:
    return page.get_by_test_id("stMetric").filter(has_text=label)


def share(*, hold: float) -> float:
    """Word 0's share of the influence on a GRU's last state of 8 numbers, by autograd."""
    x = word_vectors(SENTENCE.split(), 16, seed=0).double()
    torch.manual_seed(0)
    gru = nn.GRU(16, 8, batch_first=True)
    with torch.no_grad():
        gru.bias_ih_l0[8:16] += hold
    gru = gru.double()
    jacobian = torch.autograd.functional.jacobian(lambda one: gru(one[None])[1][0, 0], x)
    norms = jacobian.norm(dim=(0, 2))
    return float(norms[0] / norms.mean())


def test_the_main_path(page: Page, site: Site, other: Page):
    open_whole_page(page, site, "/why-attention", "Why attention")
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg")).to_have_count(4)
    type_text(page, "Sentence", SENTENCE)
    expect(metric(page, "Numbers in the sentence")).to_contain_text("8 × 16 = 128")
    set_slider(page, "Numbers in the state", 0, -2)  # 32 -> 8
    expect(metric(page, "Numbers in the last state")).to_contain_text("8")
    before, after = share(hold=0.0), share(hold=4.0)
    assert before < 0.2 < after  # what is held is not forgotten
    expect(metric(page, "Word 0 in the GRU")).to_contain_text(f"{before:.2g}")
    set_slider(page, "Hold", 0, 8)  # 0 -> 4
    expect(page).to_have_url(re.compile("why_attention_hold=4"))
    expect(metric(page, "Word 0 in the GRU")).to_contain_text(f"{after:.2g}")

    other.goto(page.url)
    expect(metric(other, "Numbers in the last state")).to_contain_text("8")
    expect(metric(other, "Word 0 in the GRU")).to_contain_text(f"{after:.2g}")
    expect(other.get_by_label("Sentence", exact=True)).to_have_value(SENTENCE)


def test_measuring_again_takes_longer_sentences(page: Page, site: Site):
    open_whole_page(page, site, "/why-attention", "Why attention")
    measured = page.get_by_text(re.compile(r"measured at \d\d:\d\d:\d\d UTC"))
    expect(measured).to_contain_text("5 pairs of runs")
    click(page.get_by_role("button", name="Measure again, up to 2,048 tokens"))
    expect(measured).to_contain_text("7 pairs of runs")


def test_the_notebook_s_sentence(page: Page, site: Site):
    open_page(page, site, "/why-attention", "Why attention")
    with settings(page):
        click(page.get_by_text("Use the notebook's six words"))
    expect(metric(page, "Numbers in the sentence")).to_contain_text("6 × 3 = 18")
    expect(page.get_by_label("Sentence", exact=True)).to_be_disabled()


def test_nothing_is_wider_than_a_phone(phone: Page, site: Site):
    open_whole_page(phone, site, "/why-attention", "Why attention")
    expect(phone.get_by_text("Predict, then look")).to_be_visible()
    settled(phone)
    main = phone.get_by_test_id("stMain")
    assert main.evaluate("e => e.scrollWidth <= e.clientWidth")
