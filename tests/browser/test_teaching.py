"""Test teaching features: projector view, embedded pictures, the printed exercise sheet."""

import html
import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    PROJECTOR,
    click,
    expect_parameter,
    open_page,
    press,
    set_slider,
)
from tests.helpers.visitors import wait_until_settled

LARGER = 21 / 16  # the font scale of the projector view
# The document's view when Streamlit first inserts an element.
NOTE_FIRST_VIEW = """
new MutationObserver(() => {
  if (document.querySelector(".stApp")) window.firstView ??= document.documentElement.dataset.view;
}).observe(document, { subtree: true, childList: true });
"""


def visible_height(heading: Locator) -> float:
    box = heading.locator("> *").first.bounding_box()
    assert box is not None
    return box["height"]


def test_projector_view(own_page: Page, site: Site):
    page = own_page
    page.add_init_script(NOTE_FIRST_VIEW)
    page.set_viewport_size(PROJECTOR)
    open_page(page, site, "/scaling", "Scaling")
    heading, navigation = page.get_by_role("heading", level=1), page.get_by_test_id("stSidebar")
    expect(navigation).to_be_visible()
    usual = visible_height(heading)
    press(page.get_by_role("link", name="Projector view"), "Enter")
    expect(navigation).to_be_hidden()
    expect_parameter(page, "view", "clean")
    set_slider(page, "Temperature", 0, -3)
    expect_parameter(page, "scaling_temperature", "0.5")
    expect_parameter(page, "view", "clean")
    # when opened by URL, the first paint already uses this view
    page.reload()
    expect(heading).to_have_text("Scaling")
    wait_until_settled(page)
    assert page.evaluate("window.firstView") == "clean"
    expect(page.get_by_test_id("stHeader")).to_be_hidden()
    assert abs(visible_height(heading) - LARGER * usual) < 1
    click(page.get_by_role("link", name="Next: Masking and dropout"))
    expect(heading).to_have_text("Masking and dropout")
    expect_parameter(page, "view", "clean")
    press(page.get_by_role("button", name="Exit projector view"), "Enter")
    expect(navigation).to_be_visible()
    assert "view" not in page.url
    page.go_back()
    expect(navigation).to_be_hidden()


def test_embedded_picture(page: Page, site: Site):
    open_page(page, site, "/scaling?scaling_logits=1+2", "Scaling")
    press(page.locator(".in-class summary"), "Enter")
    row = page.locator(".in-class")
    expect(row).to_contain_text("Other sites can't show pictures from this site yet.")
    row.get_by_label("Picture").select_option(index=0)
    code = row.locator("code").inner_text()
    result = re.fullmatch(
        r'<iframe src="([^"]*)" title="Attention Lab: Scaling, [^"]*" '
        r'width="(\d+)" height="(\d+)" .*',
        code,
    )
    assert result is not None
    address = html.unescape(result[1])
    assert parse_qs(urlsplit(address).query)["picture"] == ["scaling_softmax_chart"]

    width, height = int(result[2]), int(result[3])
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{address}&embed_options=dark_theme")
    chart = page.get_by_test_id("stVegaLiteChart").locator("canvas, svg")
    expect(chart).to_be_visible()
    wait_until_settled(page)
    visible = page.get_by_test_id("stMain").get_by_test_id("stElementContainer")
    expect(visible.filter(visible=True)).to_have_count(1)
    expect(page.get_by_role("button", name="Examples")).to_have_count(0)
    expect(page.get_by_role("heading")).to_have_count(0)
    caption = page.get_by_role("complementary", name="About this picture")
    expect(caption).to_contain_text("1. One row of scores (softmax chart)")
    whole = caption.get_by_role("link", name="Attention Lab: Scaling")
    expect(whole).to_have_attribute("href", f"{site.url}/scaling?scaling_logits=1+2")
    page.wait_for_function("document.querySelector('.stVegaLiteChart').offsetHeight > 0")
    marks, below = chart.bounding_box(), caption.bounding_box()
    assert marks is not None
    assert below is not None
    assert marks["y"] >= 0
    assert marks["y"] + marks["height"] <= below["y"] + 1
    assert below["y"] + below["height"] <= height + 1
    scheme = "getComputedStyle(document.querySelector('.stApp')).colorScheme"
    assert page.evaluate(scheme) == "dark"

    page.goto(f"{site.url}/scaling?embed=true&picture=x%22%5D%3Cb%3E")
    expect(caption).to_contain_text('no picture called “x"]<b>”')


def test_printed_sheet(own_page: Page, site: Site):
    own_page.emulate_media(color_scheme="dark")
    path = "/exercise-sheet?exercise_sheet_kinds=scores&exercise_sheet_text=<b>Ships sail</b>"
    open_page(own_page, site, path, "Exercise sheet")
    exercises, solutions = (
        own_page.locator(f".sheet > .{name}") for name in ("exercises", "solutions")
    )
    expect(solutions).to_contain_text("has the largest score")
    expect(exercises).to_contain_text("<b>Ships sail</b>")
    own_page.evaluate("window.print = () => { window.printed = true }")
    press(own_page.get_by_role("button", name="Print"), "Enter")
    assert own_page.evaluate("window.printed")
    wait_until_settled(own_page)
    own_page.emulate_media(media="print")
    expect(own_page.get_by_role("heading", level=1)).to_be_hidden()
    expect(own_page.get_by_role("button", name="Settings")).to_be_hidden()
    paper = "getComputedStyle(document.querySelector('.stApp')).backgroundColor"
    assert own_page.evaluate(paper) == "rgb(255, 255, 255)"
    document = own_page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", document)) == 2  # the exercise and its solution
