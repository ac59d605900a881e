"""Take the pictures of the README anew, all or some: `python -m docs.screenshots [name ...]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect

from benchmarks.browser import chromium, site
from benchmarks.painting import wait_until_idle, watch

FOLDER = Path(__file__).parent / "pictures"
WIDTH, MOST_HEIGHT = 1280, 2000

# name of the picture, address of the page, and what is there when it is painted
PAGES = (
    ("home", "/", "figure.one-pass canvas[data-painted]"),
    ("one_pass", "/one-pass", "figure.one-pass canvas[data-painted]"),
    ("heads", "/heads", "figure.mosaic canvas"),
    ("side_by_side", "/side-by-side", "figure.heatmap canvas"),
    ("word_pairs", "/word-pairs", "[data-testid=stVegaLiteChart]"),
    ("generated_tokens", "/generated-tokens", "figure.shaded .row"),
    ("ablate", "/ablate", ".st-key-ablate_grid"),
    ("what_is_recomputed", "/what-is-recomputed", "figure.panel canvas"),
    ("inside_the_cache", "/inside-the-cache", "figure.heatmap canvas"),
    ("timing", "/timing", "[data-testid=stMetric]"),
    ("variants", "/variants", "[data-testid=stVegaLiteChart]"),
    ("calculator", "/calculator", "[data-testid=stVegaLiteChart]"),
    ("models", "/models", "[data-testid=stDataFrame] canvas"),
    ("glossary", "/glossary", ".glossary li"),
    ("exercise_sheet", "/exercise-sheet", ".sheet table"),
    ("why_attention", "/why-attention", "[data-testid=stVegaLiteChart]"),
    ("similarity", "/similarity", "figure.heatmap canvas"),
    ("ladder", "/ladder", "figure.panel canvas"),
    ("why_several_heads", "/why-several-heads", "figure.heatmap canvas"),
    ("shapes", "/shapes", "figure.panel canvas"),
    ("masking", "/masking", "figure.panel canvas"),
    ("scaling", "/scaling", "[data-testid=stVegaLiteChart]"),
    ("position", "/position", "[data-testid=stVegaLiteChart]"),
    (
        "attention_without_the_matrix",
        "/attention-without-the-matrix",
        "[data-testid=stVegaLiteChart]",
    ),
    ("against_pytorch", "/against-pytorch", "figure.panel canvas"),
    ("two_networks", "/two-networks", "figure.heatmap canvas"),
    ("who_sets_the_weights", "/who-sets-the-weights", "[data-testid=stVegaLiteChart]"),
    ("watch_heads_form", "/watch-heads-form", "figure.forming canvas[data-painted]"),
    ("cheaper_models", "/cheaper-models", "figure.heatmap canvas"),
    ("block", "/block", "figure.panel canvas"),
    ("tokens", "/tokens", "figure.chips .chip"),
)


def main(names: Sequence[str]) -> None:
    """Start the site, open the pages with these names, and write one PNG a page into `pictures`."""
    chosen = names or [name for name, _, _ in PAGES] + ["generate"]
    expect.set_options(timeout=60_000)  # a model is loaded for the first picture
    with site() as address, chromium() as browser:
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page.add_init_script("localStorage.clear()")  # each picture is a new visitor's: no ticks
        page.set_default_timeout(60_000)
        watch(page)
        for name, path, shown in PAGES:
            if name not in chosen:
                continue
            page.goto(address + path)
            expect(page.locator(shown).first).to_be_visible()
            _save(page, name)
        if "generate" not in chosen:
            return
        page.goto(address + "/generate?generate_tokens=100")
        page.get_by_role("button", name="Generate").click()
        expect(page.get_by_text("Done: 100 tokens.")).to_be_visible()
        expect(page.get_by_text("Every step, and the data")).to_be_visible()
        expect(page.locator("figure.race .readout")).to_contain_text("times.")  # at its end
        _save(page, "generate")


def _save(page: Page, name: str) -> None:
    """The page from its top, in 256 colours: a small file in which text stays sharp.

    They are chosen to cover all that are there: the commonest alone would lose the highest weight,
    a single yellow cell.
    """
    page.get_by_test_id("stStatusWidget").wait_for(state="detached")
    wait_until_idle(page)
    height = int(page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight"))
    page.set_viewport_size({"width": WIDTH, "height": min(height, MOST_HEIGHT)})
    file = FOLDER / f"{name}.png"
    page.screenshot(path=file)
    few = Image.open(file).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1)
    few.save(file, optimize=True)
    page.set_viewport_size({"width": WIDTH, "height": 900})


if __name__ == "__main__":
    main(sys.argv[1:])
