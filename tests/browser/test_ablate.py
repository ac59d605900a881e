"""Test Ablate in a browser: the ranking, the strongest heads, a click in the grid, the link."""

import re
import urllib.parse

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import expect_parameter, open_page, press
from tests.helpers.bundled_models import ENCODER
from tests.helpers.visitors import wait_until_settled

LINK = f"/ablate?ablate_model={ENCODER}&ablate_text=A+lamp+before+the+storm&ablate_heads=L2H3"


def selected(page: Page) -> list[str]:
    """Return the heads listed in the URL."""
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(page.url).query)
    return query.get("ablate_heads", [])


def test_main_path(page: Page, site: Site):
    open_page(page, site, LINK, "Ablate")
    expect(page.get_by_text("Effect of each head alone (zero)")).to_be_visible()
    press(page.get_by_role("button", name="Switch off strongest head"), "Enter")
    expect(page).not_to_have_url(re.compile("L2H3"))
    wait_until_settled(page)
    [strongest] = selected(page)
    press(page.get_by_role("button", name="Add next strongest head"), "Enter")
    expect(page).to_have_url(re.compile(r"(ablate_heads=L\d+H\d+.*){2}"))
    assert selected(page)[0] == strongest
    # a click on a cell of the grid: layer 4 of 6, head 0 of 12
    grid = page.get_by_test_id("stVegaLiteChart").nth(1).locator("canvas, svg").first
    wait_until_settled(page)
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    assert box is not None
    grid.click(position={"x": box["width"] * 0.5, "y": box["height"] * 0.6})
    expect(page).to_have_url(re.compile(r"(ablate_heads=L\d+H\d+.*){3}"))
    wait_until_settled(page)
    heads = selected(page)
    page.reload()
    for head in heads:
        expect(page.get_by_test_id("stMultiSelect").get_by_text(head)).to_be_visible()
    expect_parameter(page, "ablate_heads", *heads)
