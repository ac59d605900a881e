"""The page "Variants" as a visitor walks it: by keyboard over the ladder, a measurement, a link."""

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import click, open_whole_page, press, set_slider
from tests.helpers.visitors import settled

SLIDER = "Form of attention"

# keeps in `window.most` how often a text was on the page at once
_WATCH = """(text) => {
  window.most = 0;
  const look = () => {
    const texts = [...document.querySelectorAll("[data-testid=stText]")];
    const there = texts.filter((element) => element.textContent.includes(text));
    window.most = Math.max(window.most, there.length);
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true });
}"""


def test_the_ladder_by_keyboard_then_a_measurement_stopped_and_one_finished(page: Page, site: Site):
    open_whole_page(page, site, "/variants?variants_heads=8&variants_context=4096", "Variants")
    expect(page.get_by_text("2 query heads share each key/value head")).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg")).to_have_count(4)
    set_slider(page, SLIDER, 0, 3)  # GQA 4 -> GQA 2 -> MQA -> MLA
    expect(page.get_by_text("288 + 36 = 324 numbers per token and layer")).to_be_visible()
    expect(page).to_have_url(re.compile("variants_form=MLA"))

    press(page.get_by_role("radio", name="The time of a decode step"), "Space")
    click(page.get_by_role("button", name="Measure decode steps"))
    # with 4,096 tokens there is time to stop it, however fast the machine is
    # while the script runs Streamlit shows a "Stop" of its own above the page
    page.get_by_test_id("stMain").get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("Stopped. Unfinished measurements")).to_be_visible()

    set_slider(page, "Tokens in the cache", 0, -4)  # 4096 -> 256
    expect(page).to_have_url(re.compile("variants_context=256"))
    page.evaluate(_WATCH, "MLA takes")
    press(page.get_by_role("button", name="Measure decode steps"), "Enter")
    expect(page.get_by_text(re.compile(r"Measured at \d\d:\d\d:\d\d UTC"))).to_be_visible()
    expect(
        page.get_by_text(re.compile(r"MLA takes [\d.]+ of MHA's time when absorbed"))
    ).to_be_visible()
    settled(page)
    assert page.evaluate("window.most") == 1  # nor twice for a moment, when the job is over
    with page.expect_download() as download:
        click(page.get_by_role("button", name="Download the times (CSV)"))
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == [
        "MHA",
        "GQA 4",
        "GQA 2",
        "MQA",
        "MLA absorbed",
        "MLA expanded",
    ]
