"""Ablate in a browser: switch off, rank, take the strongest, share the link; by keyboard too."""

import re
import urllib.parse

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from pages.compare.ablate import runs
from tests.helpers.browser import (
    choose,
    click,
    expect_parameter,
    metric_value,
    open_page,
    press,
    settings,
    type_text,
)
from tests.helpers.bundled_models import ENCODER
from tests.helpers.visitors import settled

TEXT = "A lamp before the storm"
LINK = f"/ablate?ablate_model={ENCODER}&ablate_text=A+lamp+before+the+storm&ablate_heads=L2H3"


def chosen(page: Page) -> list[str]:
    """The heads in the address."""
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(page.url).query)
    return query.get("ablate_heads", [])


def strongest() -> list[str]:
    """All heads of MiniLM by their effect on the text, from single runs and not from a ranking."""
    from serving import models

    asked = runs.question(ENCODER, TEXT)
    names = runs.names(models.spec(ENCODER))
    return sorted(names, key=lambda name: -runs.effect(asked, [name], "zero").size)


def test_the_main_path(page: Page, site: Site):
    open_page(page, site, "/ablate", "Ablate")
    said = page.get_by_text("Most likely with all heads on:")
    expect(said).to_contain_text("Rome")
    divergence = metric_value(page, "Divergence")
    before = divergence.inner_text()
    with settings(page):
        page.get_by_text("uniform", exact=True).click()
    expect(page).to_have_url(re.compile("ablate_kind=uniform"))
    expect(page.get_by_text("With zero, it would be")).to_be_visible()
    expect(divergence).not_to_have_text(before)
    # with a large model a ranking begins by itself only where the queue is free
    type_text(page, "Text", "Two lamps " * 20)
    expect(page.get_by_text("41 tokens.")).to_be_visible()
    rank = page.get_by_role("button", name="Rank all 270 heads")
    click(rank)
    # while the script runs Streamlit shows a "Stop" of its own
    page.locator(".st-key-ablate_stop button").click()
    expect(page.get_by_text("Stopped at")).to_be_visible()
    expect(rank).to_be_enabled()


def test_rank_and_switch_off_the_strongest(page: Page, site: Site, other: Page):
    open_page(page, site, LINK, "Ablate")
    expect(page.get_by_text("has no masked-word head, so")).to_be_visible()
    # where the text below stands, counted from the title: a click may scroll the page
    distance = (
        "[...document.querySelectorAll('h1, [data-testid=stExpander]')].slice(0, 2)"
        ".map(e => e.getBoundingClientRect().top).reduce((a, b) => b - a)"
    )
    for which in (0, 1):  # painted: until then the page still grows
        chart = page.get_by_test_id("stVegaLiteChart").nth(which)
        expect(chart.locator("canvas, svg").first).to_be_visible()
    expect(page.get_by_text("The code that switched these heads off")).to_be_visible()
    expect(page.get_by_text("Effect of each head alone (zero)")).to_be_visible()
    settled(page)
    before = page.evaluate(distance)
    with settings(page):
        click(page.get_by_text("uniform", exact=True))  # another ranking
    expect(page.get_by_text("Effect of each head alone (uniform)")).to_be_visible()
    settled(page)
    assert page.evaluate(distance) == before
    with settings(page):
        click(page.get_by_text("zero", exact=True))
    expect(page.get_by_text("Effect of each head alone (zero)")).to_be_visible()
    order = strongest()
    click(page.get_by_role("button", name="Switch off strongest head"))
    expect_parameter(page, "ablate_heads", *order[:1])
    click(page.get_by_role("button", name="Add next strongest head"))
    expect_parameter(page, "ablate_heads", *order[:2])
    expect(page.get_by_text("Their separate effects add up to")).to_be_visible()
    # a click on a cell of the grid: layer 4 of 6, head 0 of 12
    grid = page.get_by_test_id("stVegaLiteChart").nth(1).locator("canvas, svg").first
    settled(page)
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    assert box is not None
    grid.click(position={"x": box["width"] * 0.5, "y": box["height"] * 0.6})
    expect(page).to_have_url(re.compile(r"(ablate_heads=L\d+H\d+.*){3}"))
    heads = chosen(page)
    assert len(heads) == 3
    # the link restores it all
    settled(page)
    other.goto(page.url)
    sums = page.get_by_text("Their separate effects add up to").inner_text()
    assert sums.count(" + ") == 2
    expect(other.get_by_text("Their separate effects add up to")).to_have_text(sums)
    for head in heads:
        expect(other.get_by_test_id("stMultiSelect").get_by_text(head)).to_be_visible()


def test_by_keyboard_alone(page: Page, site: Site):
    open_page(page, site, LINK, "Ablate")
    expect(page.get_by_text("has no masked-word head, so")).to_be_visible()
    choose(page.get_by_test_id("stMultiSelect").locator("input"), "L4H7")
    expect(page).to_have_url(re.compile("ablate_heads=L4H7"))
    expect(page.get_by_text("Their separate effects add up to")).to_be_visible()
    page.keyboard.press("Escape")
    type_text(page, "Text", "Two lamps " * 20)  # too long to be ranked unasked
    expect(page.get_by_text("42 tokens.")).to_be_visible()
    press(page.get_by_role("button", name="Rank all 72 heads"), "Enter")
    expect(page.get_by_text("Effect of each head alone (zero)")).to_be_visible()
    press(page.get_by_role("button", name="Switch off strongest head"), "Enter")
    expect(page).not_to_have_url(re.compile("L4H7"))
