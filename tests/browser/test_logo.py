"""The site's mark: above the navigation, on a phone in the bar, and in the tab."""

import io

import numpy as np
from PIL import Image
from playwright.sync_api import Page

from benchmarks.browser import ROOT, Site, rasterised
from tests.helpers.browser import PHONE, PROJECTOR
from tests.helpers.visitors import wait_until_settled

FRAME = ROOT / "ui" / "frame"

# Of what stands before an element: its text if it is shown, and whether our picture is behind it.
BEFORE = """
(element) => {
  const { content, backgroundImage, display } = getComputedStyle(element, "::before");
  return [display !== "none" && content, backgroundImage.startsWith('url("data:image/svg+xml')];
}
"""


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"), dtype=float)


def test_the_favicon_is_the_mark(own_page: Page):
    kept = pixels((FRAME / "favicon.png").read_bytes())
    new = pixels(rasterised(own_page, (FRAME / "logo.svg").read_text("utf-8"), len(kept)))
    # Chromium's versions may smooth edges a little differently; another picture differs by tens
    assert np.abs(new - kept).mean() < 2


def test_the_name_stands_once_in_sight(own_page: Page, site: Site):
    own_page.set_viewport_size(PROJECTOR)
    own_page.goto(site.url)
    wait_until_settled(own_page)
    bar = own_page.locator(".stAppHeader")
    assert own_page.get_by_test_id("stLogoSpacer").evaluate(BEFORE) == ['"Attention Lab"', True]
    assert bar.evaluate(BEFORE)[0] is False
    own_page.set_viewport_size(PHONE)
    assert bar.evaluate(BEFORE) == ['"Attention Lab"', True]
