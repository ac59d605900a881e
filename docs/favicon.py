"""Redraw the favicon from the site's logo: `python -m docs.favicon`."""

from __future__ import annotations

from benchmarks.browser import ROOT, chromium, rasterised

FRAME = ROOT / "ui" / "frame"
SIZE = 64

if __name__ == "__main__":
    with chromium() as browser:
        mark = (FRAME / "logo.svg").read_text(encoding="utf-8")
        (FRAME / "favicon.png").write_bytes(rasterised(browser.new_page(), mark, SIZE))
