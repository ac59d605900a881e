"""Test One pass in a browser: point, open, explain, take the tour, and generate text."""

import re
from collections.abc import Iterator
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import Browser, CDPSession, Locator, Page, expect

from attention_core import generate
from benchmarks.browser import Site
from serving import models, token_text
from serving.flow import HeadEdge, compute_flow, strongest_edge_into
from serving.one_pass import OnePass, head_detail, one_pass
from tests.helpers.browser import (
    PHONE,
    PROJECTOR,
    click,
    expect_parameter,
    open_page,
    parse_number,
    press,
    type_text,
    unfold,
)
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.pass_figure import (
    LINK,
    TEXT,
    click_at,
    edge_label,
    item_position,
    open_picture,
    painted,
    point_at,
    read,
    selected,
    visible_level,
    word,
)
from tests.helpers.visitors import open_offline, visitor, wait_until_settled

N_CAPTIONS = 15
GEESE = 3  # the token "geese" of TEXT
OTHER_TEXT = "Look, six small geese swim there"
PIXELS = "canvas => canvas.toDataURL()"

# Signals each redraw of a picture after it starts listening to the keyboard.
COUNT_EARS = """
window.ears = [];
const listen = EventTarget.prototype.addEventListener;
EventTarget.prototype.addEventListener = function (name, handler, options) {
  if (this.tagName === "CANVAS" && name === "keydown") window.ears.push(options.signal);
  return listen.call(this, name, handler, options);
};
"""


@pytest.fixture(scope="module")
def passed() -> OnePass:
    return one_pass(DECODER, TEXT)


def strongest(passed: OnePass) -> HeadEdge:
    """Return the strongest curve."""
    edge = strongest_edge_into(passed.run, compute_flow(passed.run), None)
    assert edge is not None
    return edge


def pair_of(edge: HeadEdge) -> list[str]:
    """Return the location of an open head at the curve's pair, as the picture formats it."""
    numbers = map(str, (edge.layer, edge.head, edge.query, edge.key))
    layer, head, query, key = numbers
    return ["head", layer, head, "weights", query, key]


def label(picture: Locator, token: int) -> str:
    """Return the text of a token in the picture."""
    result: list[str] = picture.evaluate("canvas => canvas.closest('figure').lastDrawn.map.labels")
    return result[token]


def percent(text: str) -> float:
    return parse_number(text.removesuffix("%")) / 100


# ---- pointing, clicking, the keyboard


def test_keyboard_opens_a_cell_and_goes_back(page: Page, site: Site, passed: OnePass):
    picture = open_picture(page, site)
    out = page.locator("figure.one-pass .out")
    expect(out).to_be_hidden()
    press(picture, "ArrowUp")
    last = len(passed.run.tokens) - 1
    assert selected(picture) == last - 1
    press(picture, "Enter")
    layer, head = map(int, visible_level(picture, "layer")[1:3])
    press(picture, "ArrowLeft", "Enter", "Enter")  # the previous head, then its weights
    visible_level(picture, "matrix")
    press(picture, "ArrowLeft", "ArrowUp", "ArrowUp")
    *_, row, column, _ = visible_level(picture, "matrix")
    expected = head_detail(passed.run, layer, head - 1).weights[int(row), int(column)]
    labels = [passed.run.tokens.labels[int(token)] for token in (row, column)]
    displayed = read(picture, rf"^“{labels[0]}” → “{labels[1]}”: ([\d.]+%) = ")
    assert percent(displayed) == pytest.approx(float(expected), rel=0.05)
    place = rf"one_pass_at=matrix\+weights\+{layer}\+{head - 1}\+{row}\+{column}\+"
    expect(page).to_have_url(re.compile(place))
    press(picture, "Escape")
    visible_level(picture, "head")
    press(picture, "Escape")
    visible_level(picture, "layer")
    press(out, "Enter")
    visible_level(picture, "whole")
    expect(out).to_be_hidden()

    # step through a word's curves and open one
    edge = strongest(passed)
    steps = selected(picture) - edge.query
    press(picture, *["ArrowUp" if steps > 0 else "ArrowDown"] * abs(steps))
    assert selected(picture) == edge.query
    for _ in range(len(compute_flow(passed.run).edges)):
        press(picture, "ArrowRight")
        if re.match(edge_label(passed, edge), read(picture, ".*")):
            break
    press(picture, "Enter")
    assert visible_level(picture, "head")[:6] == pair_of(edge)


def test_pointing_reads_and_clicking_opens(page: Page, site: Site, passed: OnePass):
    picture = open_picture(page, site)
    last = len(passed.run.tokens) - 1
    text = point_at(picture, "“geese” gets ", "item", f"word {GEESE}", 0.5, 0.5)
    assert "“lake”" not in text
    page.mouse.move(0, 0)
    read(picture, "^“lake” gets ")
    assert selected(picture) == last

    # a dot opens its layer; a curve opens its head at its pair
    mlp = compute_flow(passed.run).mlp
    layer, token = divmod(int(mlp.argmax()), mlp.shape[1])
    names = f"Layer {layer}: .* of the update of “{re.escape(passed.run.tokens.labels[token])}” "
    click_at(picture, names, "dot", layer, token)
    assert visible_level(picture, "layer")[1] == str(layer)
    press(picture, "Escape")
    visible_level(picture, "whole")
    expect(page).to_have_url(re.compile(r"one_pass_at=whole"))  # sent to the server, and redrawn
    wait_until_settled(page)
    edge = strongest(passed)
    where = ("curve", edge.layer, edge.query, edge.key, 0.5)
    text = point_at(picture, edge_label(passed, edge), *where)
    assert percent(text.split("”, ")[1].split(" ")[0]) == pytest.approx(edge.share, rel=0.05)
    click_at(picture, edge_label(passed, edge), *where)
    page.mouse.move(0, 0)
    assert visible_level(picture, "head")[:6] == pair_of(edge)
    expected = head_detail(passed.run, edge.layer, edge.head).weights[edge.query, edge.key]
    displayed = percent(read(picture, r": ([\d.]+%) = "))
    assert displayed == pytest.approx(float(expected), rel=0.05)

    # an open head stays open when the text changes
    type_text(page, "Text", OTHER_TEXT)
    expect(page.locator("figure.one-pass .subtitle")).to_contain_text("7 tokens")
    page.mouse.move(0, 0)
    _, at_layer, at_head, _, row, column, _ = visible_level(picture, "head")
    run = one_pass(DECODER, OTHER_TEXT).run
    expected = head_detail(run, int(at_layer), int(at_head)).weights[int(row), int(column)]
    assert percent(read(picture, r": ([\d.]+%) = ")) == pytest.approx(float(expected), rel=0.05)


def test_clicked_word_stays_selected_until_another_is_clicked(page: Page, site: Site):
    picture = open_picture(page, site)
    click_at(picture, "“geese” gets ", "item", f"word {GEESE}", 0.5, 0.5)
    page.mouse.move(0, 0)
    read(picture, "^“geese” gets ")
    expect(page).to_have_url(re.compile(rf"one_pass_at=whole\+.*\+{GEESE}\+-1\+\d\+-1$"))
    # open the word and go back
    click_at(picture, "Layer 4 at “geese”: ", "layer", 4)
    assert visible_level(picture, "layer")[1] == "4"
    press(picture, "Escape")
    visible_level(picture, "whole")
    assert selected(picture) == GEESE
    # click outside everything
    page.locator("figure.one-pass .subtitle").click()
    assert selected(picture) == GEESE
    # another text, with the same word at a different position
    type_text(page, "Text", OTHER_TEXT)
    expect(page.locator("figure.one-pass .readout")).to_have_text(re.compile("geese"))
    wait_until_settled(page)
    assert label(picture, selected(picture)) == "geese"
    expect(page.get_by_text("adds to “\u2068geese\u2069” twice")).to_be_visible()
    wait_until_settled(page)
    page.reload()
    assert label(painted(page), selected(picture)) == "geese"


def test_controls_redraw_the_picture_and_other_sections_do_not(page: Page, site: Site):
    picture, figure = open_picture(page, site), page.locator("figure.one-pass")
    # a run that doesn't change the picture doesn't move it
    picture.evaluate(
        """canvas => new MutationObserver(() => { canvas.dataset.moved = "true"; })
          .observe(canvas, { attributeFilter: ["data-walking"] })"""
    )
    page.get_by_role("radio", name="What training changes").click()
    expect(page.get_by_text("Training changes the")).to_be_visible()
    wait_until_settled(page)
    expect(picture).not_to_have_attribute("data-moved", "true")
    press(picture, "Enter")  # any movement would have been recorded
    expect(picture).to_have_attribute("data-moved", "true")
    press(picture, "Escape")
    visible_level(picture, "whole")

    def pixels_after(control: str, key: str) -> str:
        press(figure.locator(control), key)
        wait_until_settled(page)
        pixels: str = picture.evaluate(PIXELS)
        return pixels

    before = picture.evaluate(PIXELS)
    warmer = pixels_after(".temperature", "ArrowRight")
    fewest_words = pixels_after(".top-k", "Home")
    assert len({before, warmer, fewest_words, pixels_after(".detail", "Home")}) == 4
    expect_parameter(page, "one_pass_top_k", "1")
    expect(page).to_have_url(re.compile(r"one_pass_at=whole\+.*\+0\+-1(&|$)"))
    # with a single remaining token, its probability is 1
    certain = r"The model gives “.*” a probability of 100%\."
    point_at(picture, certain, "item", "bar 0", 0.5, 0.5)
    page.mouse.move(0, 0)

    before = picture.evaluate(PIXELS)
    press(picture, "Enter", "Enter")
    _, layer, head, *_ = visible_level(picture, "head")
    press(page.get_by_role("button", name="Switch head off"), "Enter")
    expect(page).to_have_url(re.compile(f"one_pass_off=L{layer}H{head}"))
    expect(page.get_by_role("button", name="Switch head on")).to_be_visible()
    visible_level(picture, "head")  # the head stays open
    press(picture, "Escape", "Escape")
    visible_level(picture, "whole")
    page.mouse.move(0, 0)
    wait_until_settled(page)
    assert picture.evaluate(PIXELS) != before
    press(page.get_by_role("button", name="Switch all on"), "Enter")
    expect(page).not_to_have_url(re.compile("one_pass_off"))

    # an encoder has no next-token predictions and no causal mask
    picture = open_picture(page, site, f"/one-pass?one_pass_model={ENCODER}")
    expect(figure.locator(".next")).to_be_hidden()
    expect(figure.locator(".explain")).to_be_hidden()
    press(picture, "Enter", "Enter")
    visible_level(picture, "head")
    expect(page.get_by_role("button", name="Switch mask off")).to_be_hidden()
    expect(page.get_by_role("button", name="Switch ÷ √d off")).to_be_visible()


def test_explanation_of_a_next_word_and_its_shares(page: Page, site: Site, passed: OnePass):
    picture, figure = open_picture(page, site), page.locator("figure.one-pass")
    logits = passed.next_token.logits.tolist()
    panel = figure.locator(".why")
    expect(panel).to_be_hidden()
    question = figure.get_by_role("button", name="Why “")
    expect(question).to_contain_text(passed.next_token.tokens[0])
    press(question, "Enter")
    expect(panel).to_be_visible()
    assert float(panel.get_attribute("data-sum") or 0) == pytest.approx(logits[0], rel=1e-5)
    # select another word, then compare it with the most likely one
    click_at(picture, "The model gives “.*” a probability of ", "item", "bar 2", 0.5, 0.5)
    expect(panel.locator(".why-word")).to_have_value("2")
    expect(page).to_have_url(re.compile(r"one_pass_at=whole\+.*\+2$"))
    wait_until_settled(page)
    page.reload()
    picture = painted(page)
    expect(panel.locator(".why-word")).to_have_value("2")
    panel.locator(".why-other").select_option("0")
    lead = float(panel.get_attribute("data-sum") or 0)
    assert lead == pytest.approx(logits[2] - logits[0], abs=1e-5 * abs(logits[0]))
    # a head opens at the key it reads most
    share = panel.locator(".shares button").first
    layer, head, key = re.match(  # type: ignore[union-attr]
        r"L(\d+)H(\d+) reads “\u2068(.*)\u2069”", share.inner_text()
    ).groups()
    press(share, "Enter")
    _, at_layer, at_head, matrix, row, column, _ = visible_level(picture, "head")
    assert (at_layer, at_head, matrix) == (layer, head, "weights")
    assert int(row) == len(passed.run.tokens) - 1
    assert passed.run.tokens.labels[int(column)] == key
    press(picture, "Escape", "Escape", "Escape")
    expect(panel).to_be_hidden()


# ---- the tour


def test_tour_in_a_low_window_with_a_lesson_and_back(page: Page, site: Site):
    page.set_viewport_size(PROJECTOR)
    picture, figure = open_picture(page, site), page.locator("figure.one-pass")
    expect(figure.locator(".readout")).to_be_in_viewport(ratio=1)
    last = f"word {selected(picture)}"
    # the tour shows its own head, whatever was open before
    click_at(picture, "Layer 4 at “lake”: ", "layer", 4)
    page.mouse.move(0, 0)  # move the pointer away so nothing under it is read
    visible_level(picture, "layer")
    first = picture.evaluate("canvas => canvas.closest('figure').lastDrawn.map.first")
    assert first["layer"] != 4
    press(figure.get_by_role("button", name="Start the tour"), "Enter")
    following, story = (
        figure.get_by_role("button", name="Next", exact=True),
        figure.locator(".story"),
    )
    titles = set()
    for number in range(1, N_CAPTIONS + 1):
        expect(figure.locator(".count")).to_have_text(f"{number} of {N_CAPTIONS}")
        titles.add(figure.locator(".caption-title").inner_text())
        if number <= 4:  # on the whole model, the caption is below all words
            wait_until_settled(page)
            expect(story).to_be_in_viewport(ratio=1)
            above, below = picture.bounding_box(), story.bounding_box()
            assert above is not None
            assert below is not None
            assert above["y"] + item_position(picture, "item", last, 0, 1)["y"] <= below["y"]
        if number == 4:  # the curve in the caption is highlighted
            pair = f"“{label(picture, first['column'])}” → “{label(picture, first['row'])}”"
            read(picture, f"^Layer {first['layer']}: {pair}, ")
        if number == 5:
            assert visible_level(picture, "layer")[1] == str(first["layer"])
        if number == 9:
            expect(page).to_have_url(re.compile(r"one_pass_at=matrix\+weights.*\+8\+\d\+-1$"))
            wait_until_settled(page)
            url, text = page.url, figure.locator(".caption-text").inner_text()
            figure.get_by_role("link", name="Learn more").click()
            expect(page.get_by_role("heading", name="Masking and dropout")).to_be_visible()
            expect(page.get_by_label("Sentence", exact=True)).to_have_value(TEXT)
            wait_until_settled(page)
            page.go_back()
            expect(figure.locator(".caption-text")).to_have_text(text)
            wait_until_settled(page)
            assert page.url == url
        if number < N_CAPTIONS:
            press(following, "Enter")
    assert len(titles) == N_CAPTIONS
    expect(following).to_be_disabled()
    press(figure.get_by_role("button", name="End the tour"), "Enter")
    expect(story).to_be_hidden()
    expect(figure.get_by_role("button", name="Start the tour")).to_be_visible()


def test_requests_to_the_server(own_page: Page, site: Site):
    """A busy server receives only the later of two updates from a picture."""
    requests: list[str | bytes] = []
    own_page.on(
        "websocket", lambda socket: socket.on("framesent", lambda sent: requests.append(sent))
    )
    own_page.clock.install()
    picture = open_picture(own_page, site, f"{LINK}&one_pass_top_k=1&one_pass_new=2")
    figure = own_page.locator("figure.one-pass")
    expect(figure.locator(".play")).to_have_attribute("data-pass", "3 done")
    wait_until_settled(own_page)
    before = len(requests)
    assert before
    # a later location update doesn't replace a click
    picture.press("ArrowUp")  # its location is sent after a pause without further input
    figure.get_by_role("button", name="Go back to the text").press("Enter")
    own_page.clock.fast_forward(2_000)
    expect(figure.get_by_role("button", name="Continue writing")).to_be_visible()
    wait_until_settled(own_page)
    assert len(requests) == before + 1

    # each run of the page resends the captions, which must not trigger another run
    press(figure.get_by_role("button", name="Start the tour"), "Enter")
    press(figure.get_by_role("button", name="Next", exact=True), "Enter")
    expect(own_page).to_have_url(re.compile(r"one_pass_at=whole\+.*\+1\+\d\+-1(&|$)"))
    wait_until_settled(own_page)
    before = len(requests)
    own_page.clock.fast_forward(2_000)  # anything with a timer is done now
    wait_until_settled(own_page)
    assert len(requests) == before


# ---- the picture as a standalone file


@pytest.fixture
def standalone_file(page: Page, site: Site, browser: Browser) -> Iterator[Page]:
    """Open the downloaded picture offline; requests and console messages fail the test."""
    open_picture(page, site)
    unfold(page, "Download or share")
    with page.expect_download() as download:
        click(page.get_by_role("button", name="Offline copy (HTML)"))
    context = browser.new_context(viewport=PROJECTOR, color_scheme="dark")
    with open_offline(context, download.value) as saved:
        yield saved


def test_standalone_file_opens_a_cell_and_requests_nothing(standalone_file: Page, passed: OnePass):
    picture = standalone_file.locator("figure.one-pass canvas")
    expect(picture).to_have_attribute("data-painted", "true")
    figure = standalone_file.locator("figure.one-pass")
    edge = strongest(passed)
    click_at(picture, edge_label(passed, edge), "curve", edge.layer, edge.query, edge.key, 0.5)
    standalone_file.mouse.move(0, 0)
    visible_level(picture, f"head {edge.layer} {edge.head} weights {edge.query} {edge.key}")
    press(picture, "Enter", "ArrowLeft")
    row, column = edge.query, max(edge.key - 1, 0)
    visible_level(picture, f"matrix {edge.layer} {edge.head} weights {row} {column}")
    expected = head_detail(passed.run, edge.layer, edge.head).weights[row, column]
    labels = passed.run.tokens.labels
    displayed = read(picture, rf"^“{labels[row]}” → “{labels[column]}”: ([\d.]+%) = ")
    assert percent(displayed) == pytest.approx(float(expected), rel=0.05)
    expect(figure.get_by_role("button", name="Switch head")).to_be_hidden()
    press(picture, "Escape", "Escape", "Escape")
    press(figure.locator(".explain"), "Enter")
    total = float(figure.locator(".why").get_attribute("data-sum") or 0)
    assert total == pytest.approx(passed.next_token.logits[0], rel=1e-5)
    press(figure.get_by_role("button", name="Start the tour"), "Enter")
    press(figure.get_by_role("button", name="Next", exact=True), *["Enter"] * 5)
    visible_level(picture, "head")
    expect(figure.get_by_role("link", name="Learn more")).to_be_hidden()


# ---- full screen, phones


def height_and_zoom(picture: Locator) -> list[float]:
    """Return the picture's height in CSS pixels, and CSS pixels per layout unit."""
    displayed: list[float] = picture.evaluate(
        """canvas => [
          canvas.clientHeight, canvas.getContext("2d").getTransform().a / devicePixelRatio,
        ]"""
    )
    return displayed


def test_full_screen_and_its_fallback(page: Page, site: Site):
    picture = open_picture(page, site)
    on_the_page = height_and_zoom(picture)
    button = page.locator(".present")
    expect(button).to_have_text("Full screen")
    press(button, "Enter")
    expect(button).to_have_text("Exit full screen")
    expect(page.locator("figure.one-pass:fullscreen")).to_be_visible()
    height, zoom = height_and_zoom(picture)
    assert height >= 0.9 * page.evaluate("innerHeight")
    assert (on_the_page[1], zoom) == (1, 1.5)
    page.evaluate("document.exitFullscreen()")
    expect(button).to_have_text("Full screen")
    assert height_and_zoom(picture) == on_the_page

    # if the browser refuses, the picture fills the window, and Escape goes back one step at a time
    page.evaluate("void (Element.prototype.requestFullscreen = async () => { throw Error(); })")
    press(button, "Enter")
    expect(button).to_have_text("Exit full screen")
    covered = page.evaluate(
        """() => [[2, 2], [innerWidth - 2, 2], [2, innerHeight - 2], [700, 500]].every(
          (place) => document.elementFromPoint(...place).shadowRoot?.querySelector(".one-pass"))"""
    )
    assert covered
    page.keyboard.press("Enter")  # the picture has focus
    visible_level(picture, "layer")
    page.keyboard.press("Escape")
    visible_level(picture, "whole")
    expect(button).to_have_text("Exit full screen")
    page.keyboard.press("Escape")
    expect(button).to_have_text("Full screen")
    assert height_and_zoom(picture)[1] == 1


def touch(finger: CDPSession, kind: str, *points: tuple[float, float]) -> None:
    """Put a finger down ("Start"), move it through points ("Move"), or lift it ("End")."""
    for touched in [[{"x": x, "y": y}] for x, y in points] or [[]]:
        finger.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": touched})


def test_touch_on_a_phone(browser: Browser, site: Site):
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    with context, visitor(context) as page:
        picture = open_picture(
            page, site, f"{LINK}&one_pass_layer=3&one_pass_head=0&one_pass_at=layer+q+3+0+0+0+0+-1"
        )
        finger = page.context.new_cdp_session(page)
        visible_level(picture, "layer 3")

        def start() -> tuple[float, float]:
            box = picture.bounding_box()
            assert box is not None
            return box["x"] + 180, min(box["y"] + 300, PHONE["height"] - 60)

        def swipe(across: int, down: int) -> None:
            x, y = start()
            touch(finger, "Start", (x, y))
            for share in (0.3, 0.7, 1):
                touch(finger, "Move", (x + share * across, y + share * down))
            touch(finger, "End")

        swipe(-120, 10)
        visible_level(picture, "layer 4")
        swipe(120, -10)
        visible_level(picture, "layer 3")
        # redrawing the picture doesn't interrupt a gesture
        x, y = start()
        touch(finger, "Start", (x, y))
        touch(finger, "Move", (x - 30, y), (x - 60, y))
        page.locator("figure.one-pass .switch-mask").evaluate("(button) => button.click()")
        visible_level(picture, "layer")  # the server has responded
        touch(finger, "Move", (x - 120, y))
        touch(finger, "End")
        visible_level(picture, "layer 4")
        press(picture, "Enter")
        head = int(visible_level(picture, "head 4")[2])
        swipe(-120, 10)
        visible_level(picture, f"head 4 {head + 1}")
        swipe(-10, -120)
        expect(page.get_by_test_id("stMain")).not_to_have_js_property("scrollTop", 0)
        visible_level(picture, f"head 4 {head + 1}")

        # on a phone, layers run downward; a tap selects, explains and opens
        press(picture, "Escape", "Escape")
        visible_level(picture, "whole")
        box = picture.bounding_box()
        assert box is not None
        assert box["width"] <= PHONE["width"] < box["height"]
        picture.tap(position=word(picture, GEESE))
        assert selected(picture) == GEESE
        picture.tap(position=item_position(picture, "item", "bar 1", 0.3, 0.5))
        expect(page.locator("figure.one-pass .why-word")).to_have_value("1")
        wait_until_settled(page)
        middle = item_position(picture, "item", "slab 7", 0.5, 0.5)["y"]
        picture.tap(position={"x": 8, "y": middle})  # the layer number, left of its rows
        assert visible_level(picture, "layer")[1] == "7"


# ---- repeated drawing and reduced motion


def test_redrawing_adds_no_listeners_and_keeps_all_steps(own_page: Page, site: Site):
    """Streamlit calls a drawing's function again for new data."""
    own_page.add_init_script(COUNT_EARS)
    # with reduced motion, everything opens immediately
    own_page.emulate_media(reduced_motion="reduce")
    picture = open_picture(own_page, site)
    moves = picture.evaluate(
        """async (canvas) => {
          canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          return canvas.hasAttribute("data-walking");
        }"""
    )
    assert moves is False
    own_page.emulate_media(reduced_motion="no-preference")
    picture = open_picture(own_page, site)
    press(picture, "Enter")
    layer, head = map(int, visible_level(picture, "layer")[1:3])
    own_page.wait_for_function("() => window.ears.length > 1")  # the server has sent it again
    wait_until_settled(own_page)
    drawings, listening = own_page.evaluate(
        "[window.ears.length, window.ears.filter((signal) => !signal.aborted).length]"
    )
    assert listening == 1
    own_page.evaluate("window.requestAnimationFrame = () => 1")  # no animation frame arrives
    picture.press("ArrowLeft")
    own_page.wait_for_function("(heard) => window.ears.length > heard", arg=drawings, polling=50)
    expect(picture).to_have_attribute("data-place", re.compile(f"^layer {layer} {head - 1} "))


# ---- from Home


def test_from_home_by_keyboard_back_and_by_a_curve(page: Page, site: Site, passed: OnePass):
    page.set_viewport_size(PROJECTOR)
    home = f"/?home_text={quote_plus(TEXT)}"
    open_page(page, site, home, "Attention Lab")
    picture = painted(page)
    expect(page.locator("figure.one-pass .readout")).to_be_in_viewport(ratio=1)
    layer = (picture.get_attribute("data-place") or "").split()[1]
    press(picture, "Enter")
    expect(page.get_by_role("heading", name="One pass", level=1)).to_be_visible()
    assert visible_level(picture, "layer")[1] == layer
    page.keyboard.press("Escape")  # the new picture has focus
    visible_level(picture, "whole")
    page.go_back()
    expect(page.get_by_role("heading", name="Attention Lab", level=1)).to_be_visible()
    picture = painted(page)
    # same as before: selections made elsewhere in the meantime aren't in its URL
    assert page.url == site.url + home
    edge = strongest(passed)
    click_at(picture, edge_label(passed, edge), "curve", edge.layer, edge.query, edge.key, 0.5)
    expect(page.get_by_role("heading", name="One pass", level=1)).to_be_visible()
    assert visible_level(picture, "head")[:6] == pair_of(edge)
    expect(page.get_by_label("Text", exact=True)).to_have_value(TEXT)


# ---- generating text


def test_generation_with_and_without_a_cache(page: Page, site: Site):
    picture = open_picture(page, site, f"{LINK}&one_pass_top_k=1")
    figure = page.locator("figure.one-pass")
    click(figure.get_by_role("button", name="Continue writing"))
    expect(page).to_have_url(re.compile("one_pass_new=6"))
    bar, account = figure.locator(".play"), figure.locator(".play-says")
    expect(bar).to_have_attribute("data-pass", "7 done")
    model = models.get(DECODER)
    prompt = list(model.tokenizer.encode(TEXT).ids)
    new = generate(model.core, prompt, max_new_tokens=6)
    n = len(prompt) + 6
    assert selected(picture) == n - 1
    expect(account).to_contain_text("With the cache: 1 token, ")
    expect(account).to_contain_text(f"Without the cache: {n} tokens, ")
    press(figure.get_by_role("button", name="Previous step"), "Enter")
    expect(account).to_contain_text("Step 6 of 7. With the cache: 1 token")
    expect(figure.locator(".title")).to_have_text(f"The model reads “{label(picture, n - 2)}”")
    press(figure.get_by_label("KV cache"), "Space")  # plays from the first step, without the cache
    expect(bar).to_have_attribute("data-pass", "7 done")
    expect(account).to_contain_text(f"Step 7 of 7. Without the cache: {n} tokens")
    # the longer text is a regular pass, so its parts can be opened
    press(picture, "Enter", "Enter", "Enter")
    assert int(visible_level(picture, "matrix")[4]) < n
    ids = figure.evaluate("figure => figure.lastDrawn.map.labels.slice(-6)")
    assert [each.rstrip("₂₃₄₅") for each in ids] == list(token_text.pieces(model.tokenizer, new))
    press(figure.get_by_role("button", name="Go back to the text"), "Enter")
    expect(figure.get_by_role("button", name="Continue writing")).to_be_visible()
    assert "one_pass_new" not in page.url
