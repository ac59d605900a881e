"""The shapes page in a browser: play, follow a number by pointing at it, share the step."""

import math
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import open_page, plain, press, slider, unfold, unmarked
from tests.helpers.bundled_models import ENCODER
from tests.helpers.panels import framed_by, geometry, panel, read, readout_of
from tests.helpers.visitors import settled

ATTEMPTS = 10

# the smallest rectangle, in CSS pixels, of what differs between a canvas and a picture of it
_PIXELS = """(canvas) => canvas.getContext("2d")
    .getImageData(0, 0, canvas.width, canvas.height).data"""
_KEEP = f"""(canvases) => canvases.forEach((canvas) => {{
    canvas.kept = ({_PIXELS})(canvas);
}})"""
_CHANGED = f"""(canvases) => canvases.every((canvas) => canvas.isConnected) &&
  canvases.map((canvas) => {{
    const now = ({_PIXELS})(canvas), ratio = window.devicePixelRatio, box = [1e9, 1e9, -1, -1];
    for (let at = 0; at < now.length; at++) {{
        if (now[at] === canvas.kept[at]) continue;
        const x = (Math.floor(at / 4) % canvas.width) / ratio;
        const y = Math.floor(at / 4 / canvas.width) / ratio;
        box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y);
        box[2] = Math.max(box[2], x); box[3] = Math.max(box[3], y);
    }}
    return box;
}})"""


# keeps the title of every step that is shown, and when, in `window.titles`: a step may be gone
# before a test that is not there in time could look for it
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


def lit_by(
    page: Page, name: str, cell: tuple[int, ...], pictures: list[str]
) -> tuple[str, list[list[float]]]:
    """What is read at a cell, and where each picture then differs from when nothing is pointed at.

    All are compared at once. If something is scrolled or painted meanwhile, so that the pointer is
    no longer on the cell or a picture is a new one, it is all done again.
    """
    readout = readout_of(page, name)
    for _ in range(ATTEMPTS):
        read(page, name, *cell)  # it is scrolled to
        page.mouse.move(0, 0)
        expect(readout).to_have_text("")
        canvases = [panel(page, other).locator("canvas").element_handle() for other in pictures]
        page.evaluate(_KEEP, canvases)
        said = read(page, name, *cell)
        # at one moment: a picture that scrolls may lose the pointer and have it again
        both = f"([readout, canvases]) => [readout.innerText, ({_CHANGED})(canvases)]"
        now, boxes = page.evaluate(both, [readout.element_handle(), canvases])
        if boxes and plain(now) == said:
            return said, boxes
    raise AssertionError(f"the pointer does not stay on {name}{cell}")


# What is pointed at in the example (3 tokens, 6 columns in, 2 heads of 3 columns): the panel, the
# row and column of the cell and the blocks it lies in; then what is framed of each other panel.
EVERY = slice(None)
COMPUTED: list[tuple[int, str, tuple[int, ...], dict[str, tuple]]] = [
    (4, "step 4: keys", (1, 4, 0), {
        "step 1: input": (0, 1, EVERY), "step 3: W_key": (EVERY, 4),
        "step 3: W_query": (), "step 4: queries": (), "step 4: values": (),
    }),
    (7, "step 7: scores", (1, 2, 0, 0), {
        "step 6: queries": (0, 0, 1, EVERY), "step 6: keys": (0, 0, 2, EVERY),
    }),
    (8, "step 8: masked", (2, 0, 0, 0), {"step 7: scores": (0, 0, 2, 0), "step 8: scaled": ()}),
    (8, "step 8: scaled", (2, 0, 0, 0), {"step 8: masked": (0, 0, 2, 0), "step 7: scores": ()}),
    (8, "step 8: weights", (2, 0, 0, 0), {"step 8: scaled": (0, 0, 2, EVERY)}),
    (9, "step 9: context", (1, 2, 0, 0), {
        "step 8: weights": (0, 0, 1, EVERY), "step 6: values": (0, 0, EVERY, 2),
    }),
    (11, "step 11: output", (2, 4, 0), {
        "step 11: merged": (0, 2, EVERY), "step 3: W_out": (EVERY, 4), "step 10: context": (),
    }),
]  # fmt: skip
SHAPES = {
    "input": (1, 3, 6), "W_query": (6, 6), "W_key": (6, 6), "W_out": (6, 6), "queries": (1, 3, 6),
    "keys": (1, 3, 6), "values": (1, 3, 6), "merged": (1, 3, 6), "output": (1, 3, 6),
    "scores": (1, 2, 3, 3), "masked": (1, 2, 3, 3), "scaled": (1, 2, 3, 3),
    "weights": (1, 2, 3, 3), "context": (1, 2, 3, 3),
}  # fmt: skip


def shape_of(name: str) -> tuple[int, ...]:
    step, _, tensor = name.removeprefix("step ").partition(": ")
    if step == "6":
        return (1, 2, 3, 3)
    return (1, 3, 2, 3) if step == "10" else SHAPES[tensor]


@pytest.mark.parametrize(("step", "name", "cell", "read_cells"), COMPUTED)
def test_pointing_frames_what_a_number_was_computed_from(
    page: Page, site: Site, step: int, name: str, cell: tuple[int, ...], read_cells: dict
):
    open_page(page, site, f"/shapes?shapes_step={step}", "Shapes")
    expect(panel(page, name).locator("canvas")).to_be_visible()
    shapes = {other: shape_of(other) for other in read_cells}
    said, line, places = framed_by(page, name, cell, shapes)
    for other, index in read_cells.items():
        indices = np.arange(math.prod(shapes[other])).reshape(shapes[other])
        wanted = indices[index].ravel() if index else []
        assert places[other] == {
            tuple(int(i) for i in np.unravel_index(at, shapes[other])) for at in wanted
        }, other
    value = float(re.search(r"= ([-−\d.e]+)", said)[1].replace("−", "-"))  # type: ignore[index]
    assert computed(line) == pytest.approx(value, abs=0.01)  # three digits of every operand


def test_lines_lead_to_what_a_number_was_computed_from(page: Page, site: Site):
    open_page(page, site, "/shapes?shapes_step=7", "Shapes")
    expect(panel(page, "step 7: scores").locator("canvas")).to_be_visible()
    lines = page.locator(".reads line")
    for _ in range(ATTEMPTS):
        said = read(page, "step 7: scores", 1, 2, 0, 0)
        ends = lines.evaluate_all(_ENDS)
        boxes = [
            row_of(page, "step 7: scores", 1, 2, 3),
            row_of(page, "step 6: queries", 1, 0, 3),
            row_of(page, "step 6: keys", 2, 0, 3),
        ]
        if unmarked(readout_of(page, "step 7: scores")) == said and len(ends) == 2:
            break
    assert len(ends) == 2
    score, *read_rows = boxes
    for (from_end, to_end), row in zip(ends, read_rows, strict=True):
        assert touches(from_end, score)
        assert touches(to_end, row)
    page.mouse.move(0, 0)
    expect(lines).to_have_count(0)


# the two ends of each line, in the window's pixels
_ENDS = """(lines) => lines.map((line) => {
    const { left, top } = line.ownerSVGElement.getBoundingClientRect();
    const at = (name) => Number(line.getAttribute(name));
    return [[at("x1") + left, at("y1") + top], [at("x2") + left, at("y2") + top]];
})"""


def row_of(page: Page, name: str, row: int, first: int, end: int) -> tuple[float, ...]:
    """Left, top, right and bottom of some cells in a row of a tensor's first block."""
    canvas = panel(page, name).locator("canvas")
    bounds = canvas.bounding_box()
    assert bounds is not None
    left, top, width, height = geometry(canvas)
    left, top = left + bounds["x"], top + bounds["y"]
    return left + first * width, top + row * height, left + end * width, top + (row + 1) * height


def touches(end: list[float], box: tuple[float, ...]) -> bool:
    """Whether the end of a line lies at or in a box, but for a pixel."""
    (x, y), (left, top, right, bottom) = end, box
    return left - 1 <= x <= right + 1 and top - 1 <= y <= bottom + 1


def computed(line: str) -> float:
    """What the digits behind the equals sign make."""
    text = line.partition(" = ")[2].replace("−", "-").replace(" (bias)", "")
    text = text.removesuffix(", which may be looked at")
    return float(eval(re.sub(r"e\^(-?[\d.]+|-∞)", power, text).replace("·", "*")))


def power(match: re.Match[str]) -> str:
    return "0.0" if "∞" in match[1] else f"math.exp({match[1]})"


def test_a_number_lights_up_where_it_is_moved(page: Page, site: Site):
    open_page(page, site, "/shapes", "Shapes")
    unfold(page, "Follow one number")
    shapes: dict[str, tuple[int, ...]] = {
        "5 queries": (1, 3, 2, 3), "6 queries": (1, 2, 3, 3), "7 scores": (1, 2, 3, 3),
    }  # fmt: skip
    for name in ("4 queries", *shapes):
        expect(panel(page, name).locator("canvas")).to_be_visible()
    _, _, places = framed_by(page, "4 queries", (2, 4, 0), shapes)
    # token 2, column 4 of six is column 1 of head 1; a score is another number
    assert places == {"5 queries": {(0, 2, 1, 1)}, "6 queries": {(0, 1, 2, 1)}, "7 scores": set()}
    later: dict[str, tuple[int, ...]] = {"10 context": (1, 3, 2, 3), "11 merged": (1, 3, 6)}
    _, _, places = framed_by(page, "9 context", (2, 1, 0, 0), later)
    # token 2, column 1 of head 0, which is column 1 of all six
    assert places == {"10 context": {(0, 2, 0, 1)}, "11 merged": {(0, 2, 1)}}


def test_pointing_at_a_number_lights_it_up_in_the_step_before(page: Page, site: Site):
    open_page(page, site, "/shapes?shapes_step=6", "Shapes")
    before = panel(page, "step 5: queries").locator("canvas")
    expect(before).to_be_visible()
    # batch 0, head 0, token 1, column 2; the row and the column come first
    text, [box] = lit_by(page, "step 6: queries", (1, 2, 0, 0), ["step 5: queries"])
    found = re.search(r"step 6: queries\[0, 0, 1, 2\] = ([−\d.e-]+) \((.*?)\)", text)
    assert found
    assert found[2] == "batch 0, head 0, token 1 “cat”, column 2"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        matrix = torch.nn.Linear(6, 6, bias=False).weight.detach()
    x = torch.randn(3, 6, generator=torch.Generator().manual_seed(123))
    assert float(found[1].replace("−", "-")) == pytest.approx(float(x[1] @ matrix[2]), rel=1e-4)

    # in step 5 the same number is in block 1 (token 1), row 0 (head 0), column 2
    left, top, width, height = geometry(before)
    assert box[1] == pytest.approx(top, abs=3)
    assert box[3] == pytest.approx(top + height, abs=3)
    assert width - 3 <= box[2] - box[0] <= width + 5
    assert box[0] > left + 3 * width  # not in the block of token 0
    page.mouse.move(5, 5)
    expect(page.locator(".readout").first).to_have_text("")
    [box] = page.evaluate(_CHANGED, [before.element_handle()])
    assert box[2] == -1  # all as it was


def test_play_walks_to_the_last_step_and_stops(page: Page, site: Site, other: Page):
    open_page(page, site, "/shapes?shapes_step=8&shapes_speed=2", "Shapes")
    expect(heading(page, "8: attention weights")).to_be_visible()
    settled(page)
    page.evaluate(_WATCH_TITLES)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(heading(page, "11: merge heads")).to_be_visible()
    titles, times = zip(*page.evaluate("window.titles"), strict=True)
    walked = ["8: attention weights", "9: context vectors", "10: back to tokens", "11: merge heads"]
    assert [*titles] == walked
    assert times[-1] - times[0] > 3 * 1000.0  # milliseconds: it does not rush
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page).to_have_url(re.compile("shapes_step=11"))
    expect(panel(page, "step 11: output").locator("canvas")).to_be_visible()
    expect(page.get_by_text("view size is not compatible with input tensor")).to_be_visible()
    other.goto(page.url)
    expect(heading(other, "11: merge heads")).to_be_visible()


def test_pause_keeps_the_step(page: Page, site: Site):
    open_page(page, site, "/shapes?shapes_speed=2", "Shapes")
    settled(page)
    page.evaluate(_WATCH_TITLES)
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("() => window.titles.length > 2")  # a busy machine may be further by now
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    settled(page)
    titles = page.evaluate("window.titles")
    # a timer still running would have fired by now
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 2000))")
    assert page.evaluate("window.titles") == titles


def test_a_step_moves_nothing_above_it(page: Page, site: Site):
    open_page(page, site, "/shapes?shapes_step=1", "Shapes")
    expect(panel(page, "step 1: input").locator("canvas")).to_be_visible()
    settled(page)
    steps, whole = slider(page, "Step"), page.get_by_test_id("stSlider").filter(has_text="Step")
    place = whole.bounding_box()
    names = ("columns", "W_query", "queries", "queries", "queries")
    for number, name in enumerate(names, start=2):
        steps.press("ArrowRight")
        expect(panel(page, f"step {number}: {name}").last.locator("canvas")).to_be_visible()
        settled(page)
        assert whole.bounding_box() == place


def test_a_real_layer_on_a_phone(phone: Page, site: Site):
    open_page(phone, site, f"/shapes?shapes_of={ENCODER}&shapes_step=9", "Shapes")
    expect(panel(phone, "step 9: context").locator("canvas")).to_be_visible()
    expect(phone.get_by_text("heads 0 to 2 of 12", exact=False)).to_be_visible()
    settled(phone)
    inside = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert phone.evaluate(inside)
    box = phone.locator(".st-key-shapes_overview pre")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")  # no shape is cut
    # a key takes a step wherever the focus is, and the slider stays where it is seen
    phone.get_by_role("link", name="Next: ").scroll_into_view_if_needed()
    settled(phone)
    steps = phone.get_by_test_id("stSlider").filter(has_text="Step")
    place = steps.bounding_box()
    phone.keyboard.press("ArrowRight")
    expect(heading(phone, "10: back to tokens")).to_be_visible()
    canvas = panel(phone, "step 10: context").locator("canvas")
    expect(canvas).to_be_visible()
    settled(phone)
    assert steps.bounding_box() == place
    # what the step made and the buttons are on one screen
    canvas.scroll_into_view_if_needed()
    expect(canvas).to_be_in_viewport()
    expect(phone.get_by_role("button", name="Play")).to_be_in_viewport()
    # in a picture the same key reads the next number
    press(canvas, "ArrowRight", "ArrowRight")
    expect(readout_of(phone, "step 10: context")).to_contain_text("step 10: context[0, 0, 0, 1]")
    settled(phone)
    expect(heading(phone, "10: back to tokens")).to_be_visible()
