"""Take the README's screenshots: `python -m docs.screenshots`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect

from benchmarks.browser import chromium, site
from benchmarks.painting import wait_until_idle, watch

FOLDER = Path(__file__).parent / "pictures"
WINDOW_WIDTH, WINDOW_HEIGHT = 1280, 1000
MARGIN = 16  # pixels to the left and right of a picture

# (file name, URL path, selector of an element that appears once the page is painted, top and bottom
# of the picture in pixels relative to the top of that element)
PAGES = (
    ("learn", "/watch-heads-form", "figure.forming canvas[data-painted]", -68, 385),
    ("heads", "/heads", "figure.mosaic canvas", -30, 485),
    ("ablate", "/ablate", "[data-testid=stVegaLiteChart]", -38, 390),
    ("kv_cache", "/inside-the-cache", "figure.heatmap canvas", -55, 325),
)
HERO = "figure.one-pass canvas[data-painted]"
HERO_TOP, HERO_BOTTOM = -90, 514
# Pointer positions in Home's picture, in pixels from the top left corner of its canvas
WORD_X, FIRST_WORD_Y, LAST_WORD_Y, N_WORDS = 65, 56, 456, 14
STRONGEST_CURVE = (500, 270)
SHORT_MS, LONG_MS = 500, 2500


def main() -> None:
    """Start the site and write all screenshots to `pictures`."""
    expect.set_options(timeout=60_000)  # the first screenshot waits for a model to load
    with site() as address, chromium() as browser:
        page = browser.new_page(
            viewport={"width": WINDOW_WIDTH, "height": WINDOW_HEIGHT}, color_scheme="light"
        )
        page.set_default_timeout(60_000)
        watch(page)
        _hero(page, address)
        for name, path, painted, top, bottom in PAGES:
            page.goto(address + path)
            _save(_screenshot(page, painted, top, bottom), name)
        page.goto(address + "/generate?generate_tokens=60")
        page.get_by_role("button", name="Generate").click()
        expect(page.get_by_text("Done: 60 tokens.")).to_be_visible()
        expect(page.locator("figure.race .readout")).to_contain_text("times")  # the race is over
        _save(_screenshot(page, "figure.race", -5, 360), "generate")


def _hero(page: Page, address: str) -> None:
    """Save Home's picture as an animation: hover over each word, then the strongest curve."""
    page.goto(address)
    frames = list(_pointed_at(page))
    durations = [LONG_MS, *[SHORT_MS] * N_WORDS, LONG_MS]
    # One palette for all frames, so that unchanged pixels keep their color
    both = Image.new("RGB", (frames[0].width, 2 * frames[0].height))
    both.paste(frames[0])
    both.paste(frames[-1], (0, frames[0].height))
    palette = both.quantize(256, Image.Quantize.MAXCOVERAGE)  # k-means would gray the white
    first, *others = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    first.save(FOLDER / "home.gif", save_all=True, append_images=others, duration=durations, loop=0)


def _pointed_at(page: Page) -> Iterator[Image.Image]:
    yield _screenshot(page, HERO, HERO_TOP, HERO_BOTTOM)
    step = (LAST_WORD_Y - FIRST_WORD_Y) / (N_WORDS - 1)
    words = [(WORD_X, FIRST_WORD_Y + n * step) for n in range(N_WORDS)]
    for x, y in (*words, STRONGEST_CURVE):
        page.locator(HERO).hover(position={"x": x, "y": y})
        yield _screenshot(page, HERO, HERO_TOP, HERO_BOTTOM)


def _screenshot(page: Page, painted: str, top: int, bottom: int) -> Image.Image:
    """Crop the main column, `top` to `bottom` pixels below the top of the painted element."""
    element = page.locator(painted).first
    expect(element).to_be_visible()
    page.get_by_test_id("stStatusWidget").wait_for(state="detached")
    wait_until_idle(page)
    y = element.evaluate("(element) => element.getBoundingClientRect().y")
    column = page.locator("h1").evaluate(
        "(title) => { const box = title.getBoundingClientRect(); return [box.left, box.right]; }"
    )
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    left, right = column[0] - MARGIN, column[1] + MARGIN
    return image.crop((int(left), int(y + top), int(right), int(y + bottom)))


def _save(image: Image.Image, name: str) -> None:
    """Save a PNG with 256 colors that include rare ones, such as a single yellow cell."""
    few = image.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1)
    few.save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
