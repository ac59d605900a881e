"""Test the site's logo: above the navigation, in the bar on a phone, and in the browser tab."""

import io

import numpy as np
from PIL import Image
from playwright.sync_api import Page

from benchmarks.browser import ROOT, Site, rasterised
from tests.helpers.browser import PHONE, PROJECTOR
from tests.helpers.visitors import wait_until_settled

FRAME = ROOT / "ui" / "frame"

# The text before an element if it's visible, and whether our logo is its background.
BEFORE = """
(element) => {
  const { content, backgroundImage, display } = getComputedStyle(element, "::before");
  return [display !== "none" && content, backgroundImage.startsWith('url("data:image/svg+xml')];
}
"""


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"), dtype=float)


def test_favicon_is_the_logo(own_page: Page):
    favicon = pixels((FRAME / "favicon.png").read_bytes())
    new = pixels(rasterised(own_page, (FRAME / "logo.svg").read_text("utf-8"), len(favicon)))
    # Chromium versions may smooth edges slightly differently; another picture differs by tens
    assert np.abs(new - favicon).mean() < 2


def test_site_name_is_visible_once(own_page: Page, site: Site):
    own_page.set_viewport_size(PROJECTOR)
    own_page.goto(site.url)
    wait_until_settled(own_page)
    bar = own_page.locator(".stAppHeader")
    assert own_page.get_by_test_id("stLogoSpacer").evaluate(BEFORE) == ['"Attention Lab"', True]
    assert bar.evaluate(BEFORE)[0] is False
    own_page.set_viewport_size(PHONE)
    assert bar.evaluate(BEFORE) == ['"Attention Lab"', True]
