"""Locate items in the picture of one pass in a browser, and read them."""

import re

from playwright.sync_api import Locator, Page, Position, expect

from benchmarks.browser import Site
from serving.flow import HeadEdge
from serving.one_pass import OnePass
from tests.helpers.browser import click_where_the_pointer_is, open_page, plain, point
from tests.helpers.bundled_models import DECODER
from tests.helpers.visitors import wait_until_settled

TEXT = "Nine grey geese fly over the lake"
LINK = f"/one-pass?one_pass_text={TEXT.replace(' ', '+')}&one_pass_model={DECODER}"

# A point in the picture on a desktop, where layers run to the right: a layer number above its rows,
# a dot, a curve (layer, query, key, and the fraction along it), or a fraction of an item.
SPOT = """
(canvas, [what, ...at]) => {
  const { map, items } = canvas.closest("figure").lastDrawn;
  if (what === "item") {
    const { x, y, w, h } = items.get(at[0]);
    return [x + at[1] * w, y + at[2] * h];
  }
  const { x, y, w, h } = items.get(`slab ${at[0]}`),
    middle = (token) => y + ((token + 0.5) * h) / map.labels.length;
  if (what === "layer") return [x + w / 2, y / 2];
  if (what === "dot") return [x + 0.86 * w, middle(at[1])];
  const [, query, key, t] = at,
    [from, to] = [middle(key), middle(query)];
  return [x + 0.7 * w * (1.5 * t * (1 - t) + t ** 3), from + (to - from) * t * t * (3 - 2 * t)];
}
"""


def open_picture(page: Page, site: Site, link: str = LINK) -> Locator:
    """Open the page and return its canvas once painting and animations have finished."""
    open_page(page, site, link, "One pass")
    return painted(page)


def painted(page: Page) -> Locator:
    """Return the picture's canvas once painting and animations have finished."""
    canvas = page.locator("figure.one-pass canvas")
    expect(canvas).to_have_attribute("data-painted", "true")
    wait_until_settled(page)
    return canvas


def visible_level(picture: Locator, level: str) -> list[str]:
    """Wait until this level is open and the server has responded; return the location's parts."""
    expect(picture).to_have_attribute("data-place", re.compile(f"^{level} "))
    wait_until_settled(picture.page)
    return (picture.get_attribute("data-place") or "").split()


def selected(picture: Locator) -> int:
    """Return the selected token."""
    wait_until_settled(picture.page)
    return int((picture.get_attribute("data-place") or "").split()[-1])


def item_position(picture: Locator, what: str, *numbers: str | float) -> Position:
    """Return a point in the picture: "item" (name, across, down), "layer", "dot" or "curve"."""
    x, y = picture.evaluate(SPOT, [what, *numbers])
    return {"x": x, "y": y}


def word(picture: Locator, token: int) -> Position:
    """Return the center of a word in the text."""
    return item_position(picture, "item", f"word {token}", 0.5, 0.5)


def read(picture: Locator, pattern: str) -> str:
    """Wait until the readout matches a pattern, and return the pattern's first group."""
    readout = picture.page.locator("figure.one-pass .readout")
    marked = pattern.replace("“", "“\u2068?").replace("”", "\u2069?”")
    expect(readout).to_have_text(re.compile(marked))
    result = re.search(marked, readout.inner_text())
    assert result is not None
    return plain(result[1] if result.groups() else result[0])


def point_at(picture: Locator, names: str, what: str, *numbers: str | float) -> str:
    """Point at an item until the readout begins with `names`, and return the readout."""
    readout = picture.page.locator("figure.one-pass .readout")
    return point(picture, readout, f"^{names}", lambda: item_position(picture, what, *numbers))


def click_at(picture: Locator, names: str, what: str, *numbers: str | float) -> None:
    """Click an item once its readout begins with `names`."""
    point_at(picture, names, what, *numbers)
    click_where_the_pointer_is(picture.page)


def edge_label(passed: OnePass, edge: HeadEdge) -> str:
    """Return a regular expression for the start of a curve's readout."""
    query, key = (re.escape(passed.run.tokens.labels[token]) for token in (edge.query, edge.key))
    return f"Layer {edge.layer}: “{key}” → “{query}”, "
