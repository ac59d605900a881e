"""Every page on a phone."""

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import PATHS
from tests.helpers.visitors import settled

GO = "(path) => { history.pushState({}, '', path); dispatchEvent(new PopStateEvent('popstate')); }"
INSIDE = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


def test_nothing_sticks_out_on_a_phone(phone: Page, site: Site):
    """In one visit: a page is reached as by the browser's own buttons, without loading the site."""
    phone.goto(site.url)
    sticking_out, seen = [], set()
    for path in PATHS:
        phone.evaluate(GO, path)
        heading = phone.get_by_role("heading", level=1)
        expect(phone.locator("[data-testid=stApp]")).to_be_visible()
        for title in seen:
            expect(heading).not_to_have_text(title)
        settled(phone)
        if path in ("/", "/side-by-side"):
            expect(phone.locator("figure.heatmap canvas").first).to_be_visible()
        elif path in ("/ladder", "/shapes", "/masking", "/block"):
            expect(phone.locator("figure.panel canvas").first).to_be_visible()
        seen = {heading.inner_text()}
        if not phone.evaluate(INSIDE):
            sticking_out.append(path)
    assert sticking_out == []
