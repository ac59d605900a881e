"""Draw the favicon anew from the site's mark: `python -m docs.favicon`."""

from __future__ import annotations

from playwright.sync_api import Page

from benchmarks.browser import ROOT, chromium

MARK, FAVICON = ROOT / "ui/frame/logo.svg", ROOT / "ui/frame/favicon.png"
SIZE = 64


def drawn(page: Page) -> bytes:
    """The mark as a PNG, `SIZE` pixels wide and high, without a background."""
    page.set_viewport_size({"width": SIZE, "height": SIZE})
    mark = MARK.read_text(encoding="utf-8")
    page.set_content(f"<style>body {{ margin: 0 }} svg {{ display: block }}</style>{mark}")
    return page.screenshot(omit_background=True)


if __name__ == "__main__":
    with chromium() as browser:
        FAVICON.write_bytes(drawn(browser.new_page()))
