"""The page "Block" as a visitor walks it: steps of a layer, sections, a link that restores."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import click, open_page, set_slider, settings
from tests.helpers.visitors import settled


def code(page: Page) -> Locator:
    return page.locator(".code code").first


def choose_section(page: Page, name: str) -> None:
    click(page.get_by_role("combobox", name="Section"))
    page.get_by_role("option", name=name).click()


def tensor(page: Page, name: str) -> Locator:
    return page.locator(".tensors figure.panel").filter(has_text=name).first


def test_through_a_layer_step_by_step(page: Page, site: Site):
    open_page(page, site, "/block", "Block")
    set_slider(page, "Step", 0, 2)  # 0 -> 2
    expect(code(page)).to_contain_text("self.out(merge_heads(context))")
    expect(tensor(page, "outputs of the heads")).to_be_visible()
    set_slider(page, "Step", 0, 2)  # 2 -> 4
    expect(page.get_by_text("Step 4: residual sum")).to_be_visible()
    expect(code(page)).to_contain_text("attention_sum = x + attention")
    set_slider(page, "Heads", 0, -1)  # 8 -> 4
    expect(page.get_by_text("post-norm, 4 heads of 128")).to_be_visible()
    expect(page).to_have_url(re.compile("block_step=4"))


def test_sections_and_a_link_to_one(page: Page, site: Site, other: Page):
    open_page(page, site, "/block?block_decoder=smollm2-135m-instruct", "Block")
    choose_section(page, "Logit lens")
    expect(page.get_by_text("after 30 layers")).to_be_visible()
    set_slider(page, "Tokens back from the end", 0, 1)
    with settings(page):
        expect(page.get_by_text("Position 3: “\u2068France\u2069”")).to_be_visible()
    choose_section(page, "Parameters")
    expect(page.get_by_role("combobox", name="Model to count")).to_be_visible()
    choose_section(page, "Residual stream")
    # the position was kept while its slider was not there
    with settings(page):
        expect(page.get_by_text("Position 3: “\u2068France\u2069”")).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first).to_be_visible()
    other.goto(page.url)
    with settings(other):
        expect(other.get_by_text("Position 3: “\u2068France\u2069”")).to_be_visible()
        expect(other.get_by_text("Tokens back from the end")).to_be_visible()


def test_hostile_words_stay_text(page: Page, site: Site):
    text = quote("<img/src=x> ![x](y) \u202e\u0645\u0631\u062d\u0628\u0627")
    open_page(page, site, f"/block?block_text={text}&block_section=Order+of+tokens", "Block")
    expect(page.get_by_text("New order:")).to_contain_text("![x](y)")
    expect(page.get_by_test_id("stMain").locator("img")).to_have_count(0)


@pytest.mark.parametrize("section", ["One layer", "Order of tokens", "Logit lens"])
def test_nothing_is_wider_than_a_phone(phone: Page, site: Site, section: str):
    open_page(phone, site, f"/block?block_section={quote(section)}", "Block")
    expect(phone.get_by_text("Predict, then look")).to_be_visible()
    settled(phone)
    main = phone.get_by_test_id("stMain")
    assert main.evaluate("element => element.scrollWidth - element.clientWidth") <= 0
