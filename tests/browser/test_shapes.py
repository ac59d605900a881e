"""The shapes page in a browser: play, follow a number by pointing at it, share the step."""

import re
import time

import pytest
import torch
from playwright.sync_api import Browser, Locator, Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import open_page, set_slider

pytestmark = pytest.mark.browser

# the smallest rectangle, in CSS pixels, of what differs between a canvas and a picture of it
_PIXELS = """(canvas) => canvas.getContext("2d")
    .getImageData(0, 0, canvas.width, canvas.height).data"""
_KEEP = f"(canvas) => {{ canvas.kept = ({_PIXELS})(canvas); }}"
_CHANGED = f"""(canvas) => {{
    const now = ({_PIXELS})(canvas), ratio = window.devicePixelRatio, box = [1e9, 1e9, -1, -1];
    for (let at = 0; at < now.length; at++) {{
        if (now[at] === canvas.kept[at]) continue;
        const x = (Math.floor(at / 4) % canvas.width) / ratio;
        const y = Math.floor(at / 4 / canvas.width) / ratio;
        box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y);
        box[2] = Math.max(box[2], x); box[3] = Math.max(box[3], y);
    }}
    return box;
}}"""


def panel(page: Page, name: str) -> Locator:
    title = page.locator(".name").get_by_text(name, exact=True)
    return page.locator("figure.panel").filter(has=title)


def geometry(canvas: Locator) -> tuple[float, ...]:
    """Left and top of the first cell, width and height of a cell."""
    names = ("left", "top", "cell-width", "cell-height")
    return tuple(float(canvas.get_attribute(f"data-{name}") or 0) for name in names)


def heading(page: Page, text: str) -> Locator:
    return page.get_by_role("heading", name=text, level=2)


def the_readouts(page: Page) -> str:
    return " ".join(page.locator(".readout").all_inner_texts())


def test_a_number_lights_up_on_its_whole_way(page: Page, site: Site):
    open_page(page, site, "/shapes", "Shapes")
    page.get_by_text("One number's way: steps 4 to 11 together").click()
    names = ["4 queries", "5 queries", "6 queries", "7 scores", "8 weights", "9 context",
             "10 context", "11 merged"]  # fmt: skip
    canvases = [panel(page, name).locator("canvas") for name in names]
    for canvas in canvases:
        expect(canvas).to_be_visible()
        canvas.evaluate(_KEEP)
    left, top, width, height = geometry(canvases[0])
    # token 2, column 4: head 1, column 1. All pictures are read at once, and again if need be:
    # after a scroll, Chromium now and then takes the pointer away for a moment.
    handles = [canvas.element_handle() for canvas in canvases]
    for _ in range(5):
        canvases[0].hover(position={"x": left + 4.5 * width, "y": top + 2.5 * height})
        boxes = page.evaluate(f"canvases => canvases.map({_CHANGED})", handles)
        if all(box[2] >= 0 for box in boxes):
            break
    for canvas, name, (x0, y0, x1, y1) in list(zip(canvases, names, boxes, strict=True))[1:]:
        _, _, width, height = geometry(canvas)
        cells = 3 if name in ("7 scores", "8 weights") else 1  # a whole row asks with this number
        assert x1 - x0 == pytest.approx(cells * width, abs=6), name
        assert y1 - y0 == pytest.approx(height, abs=6), name


def test_pointing_at_a_number_lights_it_up_in_the_step_before(page: Page, site: Site):
    open_page(page, site, "/shapes", "Shapes")
    now = panel(page, "step 6: queries").locator("canvas")
    before = panel(page, "step 5: queries").locator("canvas")
    expect(now).to_be_visible()
    expect(before).to_be_visible()
    before.evaluate(_KEEP)
    left, top, width, height = geometry(now)
    # head 0, token 1, column 2
    now.hover(position={"x": left + 2.5 * width, "y": top + 1.5 * height})
    text = re.sub("[\u2068\u2069]", "", the_readouts(page))
    found = re.search(r"step 6: queries\[0, 0, 1, 2\] = ([−\d.e-]+) \((.*?)\)", text)
    assert found
    assert found[2] == "batch 0, head 0, token 1 “cat”, column 2"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        matrix = torch.nn.Linear(6, 6, bias=False).weight.detach()
    x = torch.randn(3, 6, generator=torch.Generator().manual_seed(123))
    assert float(found[1].replace("−", "-")) == pytest.approx(float(x[1] @ matrix[2]), rel=1e-4)

    # in step 5 the same number is in block 1 (token 1), row 0 (head 0), column 2
    box = before.evaluate(_CHANGED)
    left, top, width, height = geometry(before)
    assert box[1] == pytest.approx(top, abs=3)
    assert box[3] == pytest.approx(top + height, abs=3)
    assert width - 3 <= box[2] - box[0] <= width + 5
    assert box[0] > left + 3 * width  # not in the block of token 0
    page.mouse.move(5, 5)
    expect(page.locator(".readout").first).to_contain_text("arrow keys")
    assert before.evaluate(_CHANGED)[2] == -1  # all as it was


def test_play_walks_to_the_last_step_and_stops(page: Page, site: Site, browser: Browser):
    open_page(page, site, "/shapes?shapes_step=8", "Shapes")
    expect(heading(page, "8. attention weights")).to_be_visible()
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    begin = time.monotonic()
    for title in ("9. context vectors", "10. back to tokens", "11. merge heads"):
        expect(heading(page, title)).to_be_visible()
    assert time.monotonic() - begin > 3 * 1.0  # it does not rush
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page).to_have_url(re.compile("shapes_step=11"))
    expect(panel(page, "step 11: output").locator("canvas")).to_be_visible()
    expect(page.get_by_text("view size is not compatible with input tensor")).to_be_visible()
    other = browser.new_context().new_page()
    other.goto(page.url)
    expect(heading(other, "11. merge heads")).to_be_visible()
    other.context.close()


def test_pause_keeps_the_step(page: Page, site: Site):
    open_page(page, site, "/shapes?shapes_step=1", "Shapes")
    page.get_by_role("button", name="Play").click()
    expect(heading(page, "3. weight matrices")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.get_by_test_id("stStatusWidget").wait_for(state="detached")
    title = page.get_by_role("heading", level=2).first.inner_text()
    # a timer still running would have fired by now
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 2000))")
    assert page.get_by_role("heading", level=2).first.inner_text() == title


@pytest.mark.timed
def test_a_step_is_painted_quickly_and_nothing_above_moves(page: Page, site: Site):
    open_page(page, site, "/", "Attention Lab")  # models that load at the start are there then
    expect(page.locator("figure.heatmap canvas").first).to_be_visible()
    open_page(page, site, "/shapes?shapes_step=1", "Shapes")
    expect(panel(page, "step 1: input").locator("canvas")).to_be_visible()
    slider = page.get_by_test_id("stSlider").filter(has_text="Step")
    place = slider.bounding_box()
    seconds = []
    names = ("columns", "W_query", "queries", "queries", "queries")
    for number, name in enumerate(names, start=2):
        begin = time.monotonic()
        set_slider(page, "Step", 0, 1)
        expect(panel(page, f"step {number}: {name}").last.locator("canvas")).to_be_visible()
        seconds.append(time.monotonic() - begin)
    assert slider.bounding_box() == place
    assert sorted(seconds)[len(seconds) // 2] < 0.5


def test_a_real_layer_on_a_phone(phone: Page, site: Site):
    open_page(phone, site, "/shapes?shapes_of=all-minilm-l6-v2&shapes_step=9", "Shapes")
    expect(panel(phone, "step 9: context").locator("canvas")).to_be_visible()
    expect(phone.get_by_text("heads 0 to 2 of 12", exact=False)).to_be_visible()
    inside = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert phone.evaluate(inside)
