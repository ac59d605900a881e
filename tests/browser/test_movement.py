"""Test animations in Shapes: numbers move to their new positions, and results are highlighted."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import open_page, set_slider
from tests.helpers.panels import panel

# Record every number that moves and every set of framed cells on a canvas, in order.
WATCH = """
() => {
  window.__flown = 0;
  window.__framed = [];
  const look = (root) => new MutationObserver((records) => {
    for (const record of records) {
      for (const node of record.addedNodes)
        if (node.nodeName === "SPAN" && record.target.className === "moving") window.__flown++;
      if (record.attributeName === "data-framed" && record.target.dataset.framed)
        window.__framed.push(record.target.dataset.framed);
    }
  }).observe(root, { subtree: true, childList: true, attributes: true });
  const walk = (root) => {
    for (const element of root.querySelectorAll("*"))
      if (element.shadowRoot) { look(element.shadowRoot); walk(element.shadowRoot); }
  };
  walk(document);
}
"""


def test_numbers_move_and_results_are_highlighted(page: Page, site: Site):
    open_page(page, site, "/shapes?shapes_step=5&shapes_speed=2", "Shapes")
    expect(panel(page, "step 5: values")).to_be_visible()
    page.evaluate(WATCH)
    set_slider(page, "Step", 0, 1)
    expect(panel(page, "step 6: values")).to_be_visible()
    # queries, keys and values: 3 tokens of 2 heads with 3 columns each
    page.wait_for_function("() => window.__flown === 3 * 3 * 2 * 3")
    expect(page.locator(".moving span")).to_have_count(0)

    page.evaluate(WATCH)
    set_slider(page, "Step", 0, 1)
    scores = panel(page, "step 7: scores")
    expect(scores).to_be_visible()
    # the 3 x 3 scores of both heads in sequence, each framed alone on its canvas
    visible = "window.__framed.filter((framed) => /^\\d+$/.test(framed))"
    page.wait_for_function(f"() => new Set({visible}).size >= 2 * 3 * 3")
    expect(scores.locator("canvas")).to_have_attribute("data-framed", "")


def test_reduced_motion(own_page: Page, site: Site):
    own_page.emulate_media(reduced_motion="reduce")
    open_page(own_page, site, "/shapes?shapes_step=5", "Shapes")
    expect(panel(own_page, "step 5: values")).to_be_visible()
    own_page.evaluate(WATCH)
    set_slider(own_page, "Step", 0, 1)
    expect(panel(own_page, "step 6: values")).to_be_visible()
    expect(panel(own_page, "step 6: values").locator("canvas")).to_have_attribute(
        "data-framed", re.compile("^$")
    )
    assert own_page.evaluate("window.__flown") == 0
