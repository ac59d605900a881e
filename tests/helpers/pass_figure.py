"""The picture of one pass in a browser: where things lie in it, and what is read there."""

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

# A point of the whole picture on a desk, where layers go to the right: the number of a layer above
# its rows, a dot, a curve (layer, query, key, and how far along it), or a share of an item.
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
    """The canvas of the page, once it is painted and nothing goes on."""
    open_page(page, site, link, "One pass")
    return painted(page)


def painted(page: Page) -> Locator:
    """The canvas of the picture on a page, once it is painted and nothing goes on."""
    canvas = page.locator("figure.one-pass canvas")
    expect(canvas).to_have_attribute("data-painted", "true")
    wait_until_settled(page)
    return canvas


def visible_level(picture: Locator, level: str) -> list[str]:
    """The parts of the place, once this level is open and the server has answered."""
    expect(picture).to_have_attribute("data-place", re.compile(f"^{level} "))
    wait_until_settled(picture.page)
    return (picture.get_attribute("data-place") or "").split()


def selected(picture: Locator) -> int:
    """The selected token."""
    wait_until_settled(picture.page)
    return int((picture.get_attribute("data-place") or "").split()[-1])


def item_position(picture: Locator, what: str, *numbers: str | float) -> Position:
    """A point of the picture: "item" (name, across, down), "layer", "dot" or "curve"."""
    x, y = picture.evaluate(SPOT, [what, *numbers])
    return {"x": x, "y": y}


def word(picture: Locator, token: int) -> Position:
    """The middle of a word of the text."""
    return item_position(picture, "item", f"word {token}", 0.5, 0.5)


def read(picture: Locator, pattern: str) -> str:
    """What the first group of a pattern matches in what is read, once it matches."""
    readout = picture.page.locator("figure.one-pass .readout")
    marked = pattern.replace("“", "“\u2068?").replace("”", "\u2069?”")
    expect(readout).to_have_text(re.compile(marked))
    result = re.search(marked, readout.inner_text())
    assert result is not None
    return plain(result[1] if result.groups() else result[0])


def point_at(picture: Locator, names: str, what: str, *numbers: str | float) -> str:
    """Point at a spot until what is read there begins so; what is read."""
    readout = picture.page.locator("figure.one-pass .readout")
    return point(picture, readout, f"^{names}", lambda: item_position(picture, what, *numbers))


def click_at(picture: Locator, names: str, what: str, *numbers: str | float) -> None:
    """Click a spot once what is read there begins so."""
    point_at(picture, names, what, *numbers)
    click_where_the_pointer_is(picture.page)


def edge_label(passed: OnePass, edge: HeadEdge) -> str:
    """How what is read of a curve begins, as a regular expression."""
    query, key = (re.escape(passed.run.tokens.labels[token]) for token in (edge.query, edge.key))
    return f"Layer {edge.layer}: “{key}” → “{query}”, "
