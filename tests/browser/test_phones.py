"""Every page on a phone."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site
from tests.browser.test_site import PATHS, settled

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("path", PATHS)
def test_nothing_sticks_out_on_a_phone(phone: Page, site: Site, path: str):
    phone.goto(site.url + path)
    expect(phone.get_by_role("heading", level=1)).to_be_visible()
    settled(phone)
    if path in ("/", "/side-by-side"):
        expect(phone.locator("figure.heatmap canvas").first).to_be_visible()
    elif path in ("/ladder", "/shapes", "/masking", "/block"):
        expect(phone.locator("figure.panel canvas").first).to_be_visible()
    inside = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert phone.evaluate(inside)
