"""Test Shapes in a browser: play, trace a number by pointing at it, use a phone."""

import re

from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import open_page, press, text_without_marks, unfold
from tests.helpers.bundled_models import ENCODER
from tests.helpers.panels import framed_cells, geometry, panel, read, readout_of
from tests.helpers.visitors import wait_until_settled

ATTEMPTS = 10

# Records the title and time of every step in `window.titles`, so a slow test can't miss one.
_WATCH_TITLES = """() => {
  const titles = (window.titles = []);
  const look = () => {
    const bold = [...document.querySelectorAll("[data-testid=stMain] strong")];
    const title = bold.map((part) => part.innerText.split("Step ")[1]).find(Boolean);
    if (title && titles.at(-1)?.[0] !== title) titles.push([title, performance.now()]);
  };
  const observer = new MutationObserver(look);
  observer.observe(document.body, { subtree: true, childList: true, characterData: true });
  look();
}"""


def heading(page: Page, text: str) -> Locator:
    return page.get_by_text(f"Step {text}")


def test_pointing_frames_the_inputs_of_a_number(page: Page, site: Site):
    """Three tokens with six columns, and two heads with three columns each."""
    open_page(page, site, "/shapes?shapes_step=7", "Shapes")
    expect(panel(page, "step 7: scores").locator("canvas")).to_be_visible()
    heads = (1, 2, 3, 3)
    shapes: dict[str, tuple[int, ...]] = {"step 6: queries": heads, "step 6: keys": heads}
    _, line, places = framed_cells(page, "step 7: scores", (1, 2, 0, 0), shapes)
    assert places == {
        "step 6: queries": {(0, 0, 1, column) for column in range(3)},
        "step 6: keys": {(0, 0, 2, column) for column in range(3)},
    }
    assert line.count("·") == 3
    # lines connect the number to both rows
    lines = page.locator(".reads line")
    for _ in range(ATTEMPTS):
        message = read(page, "step 7: scores", 1, 2, 0, 0)
        ends = lines.evaluate_all(_ENDS)
        score, *rows = [
            row_of(page, "step 7: scores", 1, 2, 3),
            row_of(page, "step 6: queries", 1, 0, 3),
            row_of(page, "step 6: keys", 2, 0, 3),
        ]
        if text_without_marks(readout_of(page, "step 7: scores")) == message and len(ends) == 2:
            break
    assert len(ends) == 2
    for (from_end, to_end), row in zip(ends, rows, strict=True):
        assert touches(from_end, score)
        assert touches(to_end, row)
    page.mouse.move(0, 0)
    expect(lines).to_have_count(0)

    # a split moves a number: token 2, column 4 of six becomes column 1 of head 1
    unfold(page, "Follow one number")
    shapes = {"5 queries": (1, 3, 2, 3), "6 queries": heads, "7 scores": heads}
    for name in ("4 queries", *shapes):
        expect(panel(page, name).locator("canvas")).to_be_visible()
    _, _, places = framed_cells(page, "4 queries", (2, 4, 0), shapes)
    assert places == {"5 queries": {(0, 2, 1, 1)}, "6 queries": {(0, 1, 2, 1)}, "7 scores": set()}


# both ends of each line, in window pixels
_ENDS = """(lines) => lines.map((line) => {
    const { left, top } = line.ownerSVGElement.getBoundingClientRect();
    const at = (name) => Number(line.getAttribute(name));
    return [[at("x1") + left, at("y1") + top], [at("x2") + left, at("y2") + top]];
})"""


def row_of(page: Page, name: str, row: int, first: int, end: int) -> tuple[float, ...]:
    """Return left, top, right and bottom of some cells in a row of a tensor's first block."""
    canvas = panel(page, name).locator("canvas")
    bounds = canvas.bounding_box()
    assert bounds is not None
    left, top, width, height = geometry(canvas)
    left, top = left + bounds["x"], top + bounds["y"]
    return left + first * width, top + row * height, left + end * width, top + (row + 1) * height


def touches(end: list[float], box: tuple[float, ...]) -> bool:
    """Check that a line ends at or inside a box, within one pixel."""
    (x, y), (left, top, right, bottom) = end, box
    return left - 1 <= x <= right + 1 and top - 1 <= y <= bottom + 1


def test_play_reaches_the_last_step_and_pauses(page: Page, site: Site):
    open_page(page, site, "/shapes?shapes_step=8&shapes_speed=2", "Shapes")
    expect(heading(page, "8: attention weights")).to_be_visible()
    wait_until_settled(page)
    page.evaluate(_WATCH_TITLES)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(heading(page, "11: merge heads")).to_be_visible()
    titles, times = zip(*page.evaluate("window.titles"), strict=True)
    walk = ["8: attention weights", "9: context vectors", "10: back to tokens", "11: merge heads"]
    assert [*titles] == walk
    assert times[-1] - times[0] > 3 * 1000.0  # in milliseconds: playback isn't rushed
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page).to_have_url(re.compile("shapes_step=11"))
    expect(panel(page, "step 11: output").locator("canvas")).to_be_visible()

    open_page(page, site, "/shapes?shapes_speed=2", "Shapes")
    wait_until_settled(page)
    page.evaluate(_WATCH_TITLES)
    page.get_by_role("button", name="Play").click()
    # a slow machine may have advanced further
    page.wait_for_function("() => window.titles.length > 2")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    wait_until_settled(page)
    paused = page.evaluate("window.titles")
    # a timer that's still running would have fired by now
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 2000))")
    assert page.evaluate("window.titles") == paused


def test_real_layer_on_a_phone(phone: Page, site: Site):
    open_page(phone, site, f"/shapes?shapes_of={ENCODER}&shapes_step=9", "Shapes")
    expect(panel(phone, "step 9: context").locator("canvas")).to_be_visible()
    expect(phone.get_by_text("heads 0 to 2 of 12", exact=False)).to_be_visible()
    wait_until_settled(phone)
    box = phone.locator(".st-key-shapes_overview pre")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")  # no shape is cut off
    # the keys change the step wherever the focus is, and the slider stays at its position
    phone.get_by_role("link", name="Next: ").scroll_into_view_if_needed()
    wait_until_settled(phone)
    steps = phone.get_by_test_id("stSlider").filter(has_text="Step")
    place = steps.bounding_box()
    phone.keyboard.press("ArrowRight")
    expect(heading(phone, "10: back to tokens")).to_be_visible()
    canvas = panel(phone, "step 10: context").locator("canvas")
    expect(canvas).to_be_visible()
    wait_until_settled(phone)
    assert steps.bounding_box() == place
    # the output of the step and the buttons fit on one screen
    canvas.scroll_into_view_if_needed()
    expect(canvas).to_be_in_viewport()
    expect(phone.get_by_role("button", name="Play")).to_be_in_viewport()
    # inside a picture, the same key reads the next number
    press(canvas, "ArrowRight", "ArrowRight")
    expect(readout_of(phone, "step 10: context")).to_contain_text("step 10: context[0, 0, 0, 1]")
    wait_until_settled(phone)
    expect(heading(phone, "10: back to tokens")).to_be_visible()
