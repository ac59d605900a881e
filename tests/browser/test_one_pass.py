"""One pass in a browser: walked into and out, told as a story, switched, read by pointing."""

import re
from collections.abc import Iterator

import pytest
import torch
from playwright.sync_api import Browser, CDPSession, Locator, Page, expect

from attention_core import generate
from attention_core.costs.formulas import forward_flops
from attention_core.experiments.start.one_pass import Switched, switched_pass
from benchmarks.browser import Site
from serving import models, token_text
from serving.one_pass import one_pass, open_head
from tests.helpers.browser import PHONE, PROJECTOR, click, open_page, press, unfold, written
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.visitors import opened_offline, settled, visitor

TEXT = "Nine grey geese fly over the lake"
LINK = f"/one-pass?one_pass_text={TEXT.replace(' ', '+')}&one_pass_model={DECODER}"
N_CAPTIONS = 15


# A signal for each drawing of a picture that has listened to the keyboard.
COUNT_EARS = """
window.ears = [];
const listen = EventTarget.prototype.addEventListener;
EventTarget.prototype.addEventListener = function (name, handler, options) {
  if (this.tagName === "CANVAS" && name === "keydown") window.ears.push(options.signal);
  return listen.call(this, name, handler, options);
};
"""


def open_picture(page: Page, site: Site, link: str = LINK) -> Locator:
    open_page(page, site, link, "One pass")
    canvas = page.locator("figure.one-pass canvas")
    expect(canvas).to_have_attribute("data-painted", "true")
    settled(page)
    return canvas


def at(picture: Locator, level: str) -> list[str]:
    """The parts of the place, once the walk leads to this level and the server has answered."""
    expect(picture).to_have_attribute("data-place", re.compile(f"^{level} "))
    settled(picture.page)
    return (picture.get_attribute("data-place") or "").split()


def read(page: Page, pattern: str) -> float:
    """A number of what is read, by a regular expression with one group."""
    readout = page.locator("figure.one-pass .readout")
    expect(readout).to_have_text(re.compile(pattern))
    return written(re.search(pattern, readout.inner_text())[1])  # type: ignore[index]


def test_into_a_cell_and_out_by_the_keyboard(page: Page, site: Site):
    picture = open_picture(page, site)
    out = page.locator("figure.one-pass .out")
    expect(out).to_be_disabled()
    press(picture, "ArrowRight", "Enter")
    layer = at(picture, "layer")[1]
    press(picture, "ArrowRight", "Enter", "Enter")  # head 1, then its weights
    at(picture, "matrix")
    press(picture, "ArrowLeft", "ArrowUp", "ArrowRight")
    *_, row, column, _ = at(picture, "matrix")
    expected = open_head(one_pass(DECODER, TEXT).run, int(layer), 1).weights[int(row), int(column)]
    shown = read(page, rf"weights, L{layer}H1, \[{row}, {column}\].*: ([-−\d.e]+) = ")
    assert shown == pytest.approx(float(expected), rel=1e-5)
    expect(page).to_have_url(re.compile(rf"one_pass_at=matrix\+weights\+{layer}\+1\+{row}"))
    press(picture, "Escape")
    at(picture, "head")
    press(picture, "Escape")
    at(picture, "layer")
    press(out, "Enter")
    at(picture, "whole")


def test_the_story_from_first_to_last_with_a_lesson_and_back(page: Page, site: Site):
    open_picture(page, site)
    figure = page.locator("figure.one-pass")
    press(figure.get_by_role("button", name="Tell me the story"), "Enter")
    following = figure.get_by_role("button", name="Next")
    titles = set()
    for number in range(1, N_CAPTIONS + 1):
        expect(figure.locator(".count")).to_have_text(f"{number} of {N_CAPTIONS}")
        titles.add(figure.locator(".caption-title").inner_text())
        if number == 9:
            expect(page).to_have_url(re.compile(r"one_pass_at=matrix\+weights.*\+8$"))
            settled(page)
            there, said = page.url, figure.locator(".caption-text").inner_text()
            figure.get_by_role("link", name="Learn this").click()
            expect(page.get_by_role("heading", name="Masking and dropout")).to_be_visible()
            expect(page.get_by_label("Sentence", exact=True)).to_have_value(TEXT)
            settled(page)
            page.go_back()
            expect(figure.locator(".caption-text")).to_have_text(said)
            settled(page)
            assert page.url == there
        if number < N_CAPTIONS:
            press(following, "Enter")
    assert len(titles) == N_CAPTIONS
    expect(following).to_be_disabled()
    press(figure.get_by_role("button", name="End the story"), "Enter")
    expect(figure.locator(".story")).to_be_hidden()


def test_a_head_is_switched_off_and_on_again(page: Page, site: Site):
    picture = open_picture(page, site)
    press(picture, "Enter", "Enter")
    _, layer, head, *_ = at(picture, "head")
    press(page.get_by_role("button", name="Switch head off"), "Enter")
    expect(page).to_have_url(re.compile(f"one_pass_off=L{layer}H{head}"))
    expect(page.get_by_role("button", name="Switch head on")).to_be_visible()
    at(picture, "head")  # nobody was thrown out
    press(picture, "Escape", "Escape")
    at(picture, "whole")
    switched = Switched(heads=frozenset({(int(layer), int(head))}))
    ids = torch.tensor([one_pass(DECODER, TEXT).run.tokens.ids])
    with torch.inference_mode():
        _, layers = switched_pass(models.get(DECODER).core, ids, switched)
    output = layers[int(layer)].attention.output
    assert output is not None
    shown = read(page, r"attention adds ([\d.]+)")
    assert shown == pytest.approx(float(output[0, -1].norm()), rel=1e-3)
    press(page.get_by_role("button", name="All on"), "Enter")
    expect(page).not_to_have_url(re.compile("one_pass_off"))


def test_temperature_and_top_k_move_the_bars(page: Page, site: Site):
    picture = open_picture(page, site)
    pixels = "canvas => canvas.toDataURL()"
    pictures = {picture.evaluate(pixels)}
    for control, key, said in ((".temperature", "ArrowRight", "1.1"), (".top-k", "Home", "1")):
        press(page.locator(f"figure.one-pass {control}"), key)
        expect(page.locator(f"figure.one-pass {control} + output")).to_have_text(said)
        pictures.add(picture.evaluate(pixels))
    assert len(pictures) == 3


def test_an_encoder_predicts_nothing_and_hides_nothing(page: Page, site: Site):
    picture = open_picture(page, site, f"/one-pass?one_pass_model={ENCODER}")
    expect(page.locator("figure.one-pass .next")).to_be_hidden()
    press(picture, "Enter", "Enter")
    at(picture, "head")
    expect(page.get_by_role("button", name="Mask off")).to_be_hidden()
    expect(page.get_by_role("button", name="÷ √d off")).to_be_visible()


@pytest.fixture
def saved_walk(page: Page, site: Site, browser: Browser) -> Iterator[Page]:
    """The walk as one file, opened without a network; requests and complaints fail the test."""
    open_picture(page, site)
    unfold(page, "Take it away")
    with page.expect_download() as download:
        click(page.get_by_role("button", name="The walk as one HTML file"))
    context = browser.new_context(viewport=PROJECTOR, color_scheme="dark")
    with opened_offline(context, download.value) as saved:
        yield saved


def test_the_walk_as_one_file_goes_into_a_cell_and_asks_for_nothing(saved_walk: Page):
    picture = saved_walk.locator("figure.one-pass canvas")
    expect(picture).to_have_attribute("data-painted", "true")
    press(picture, "ArrowLeft", "ArrowLeft", "Enter")  # from layer 15, which was open, to 13
    press(picture, *["ArrowRight"] * 7, "Enter", "Enter", "ArrowUp")
    row = len(one_pass(DECODER, TEXT).run.tokens) - 2
    at(picture, f"matrix 13 7 weights {row} 0")
    expected = open_head(one_pass(DECODER, TEXT).run, 13, 7).weights[row, 0]
    shown = read(saved_walk, rf"weights, L13H7, \[{row}, 0\].*: ([-−\d.e]+) = ")
    assert shown == pytest.approx(float(expected), rel=1e-5)
    expect(saved_walk.get_by_role("button", name="Switch head")).to_be_hidden()
    press(saved_walk.get_by_role("button", name="Tell me the story"), "Enter")
    press(saved_walk.get_by_role("button", name="Next"), *["Enter"] * 5)
    at(picture, "head 13 7 q")
    expect(saved_walk.get_by_role("link", name="Learn this")).to_be_hidden()


def test_on_a_phone_layers_go_down_and_a_tap_walks_in(phone: Page, site: Site):
    picture = open_picture(phone, site)
    box = picture.bounding_box()
    assert box is not None
    assert box["width"] <= 390 < box["height"]
    picture.click(position={"x": box["width"] * 0.3, "y": box["height"] * 0.5})
    at(picture, "layer")
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")


def height_and_zoom(picture: Locator) -> list[float]:
    """How high the picture is in CSS pixels, and how many of them a unit of its layout has."""
    shown: list[float] = picture.evaluate(
        """canvas => [
          canvas.clientHeight, canvas.getContext("2d").getTransform().a / devicePixelRatio,
        ]"""
    )
    return shown


@pytest.mark.parametrize("path", ["/", "/one-pass"])
def test_what_is_read_is_in_a_low_window_too(browser: Browser, site: Site, path: str):
    context = browser.new_context(viewport=PROJECTOR)
    with visitor(context) as page:
        page.goto(site.url + path)
        expect(page.locator("figure.one-pass canvas")).to_have_attribute("data-painted", "true")
        settled(page)
        expect(page.locator("figure.one-pass .readout")).to_be_in_viewport(ratio=1)
    context.close()


def test_presented_it_fills_the_screen_in_larger_type_until_the_browser_ends_that(
    page: Page, site: Site
):
    picture = open_picture(page, site)
    on_the_page = height_and_zoom(picture)
    readout = page.locator("figure.one-pass .readout")
    size = "element => parseFloat(getComputedStyle(element).fontSize)"
    letters = readout.evaluate(size)
    press(page.get_by_role("button", name="Present"), "Enter")
    expect(page.get_by_role("button", name="End presentation")).to_be_visible()
    expect(page.locator("figure.one-pass:fullscreen")).to_be_visible()
    height, zoom = height_and_zoom(picture)
    assert height >= 0.9 * page.evaluate("innerHeight")
    assert (on_the_page[1], zoom) == (1, 1.5)
    assert readout.evaluate(size) == pytest.approx(1.5 * letters)
    page.evaluate("document.exitFullscreen()")
    expect(page.get_by_role("button", name="Present")).to_have_text("Present")
    assert height_and_zoom(picture) == on_the_page


def test_presented_without_a_screen_it_covers_the_window_and_escape_goes_out_step_by_step(
    page: Page, site: Site
):
    picture = open_picture(page, site)
    page.evaluate("void (Element.prototype.requestFullscreen = async () => { throw Error(); })")
    press(page.get_by_role("button", name="Present"), "Enter")
    ending = page.get_by_role("button", name="End presentation")
    expect(ending).to_be_visible()
    covered = page.evaluate(
        """() => [[2, 2], [innerWidth - 2, 2], [2, innerHeight - 2], [700, 500]].every(
          (place) => document.elementFromPoint(...place).shadowRoot?.querySelector(".one-pass"))"""
    )
    assert covered
    page.keyboard.press("Enter")  # the picture has the focus
    page.keyboard.press("Enter")
    at(picture, "head")
    page.keyboard.press("Escape")
    at(picture, "layer")
    click(page.locator("figure.one-pass .out"))
    at(picture, "whole")
    expect(ending).to_be_visible()
    page.keyboard.press("Escape")
    expect(ending).to_be_hidden()
    assert height_and_zoom(picture)[1] == 1


def touch(finger: CDPSession, kind: str, *points: tuple[float, float]) -> None:
    """Put a finger down ("Start"), move it through points ("Move"), or lift it ("End")."""
    for touched in [[{"x": x, "y": y}] for x, y in points] or [[]]:
        finger.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": touched})


def test_a_finger_leads_to_the_next_layer_and_head_or_scrolls_the_page(
    browser: Browser, site: Site
):
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    with context, visitor(context) as page:
        picture = open_picture(page, site, f"{LINK}&one_pass_layer=3")
        finger = page.context.new_cdp_session(page)
        press(picture, "Enter")
        layer = int(at(picture, "layer")[1])

        def swipe(across: int, down: int) -> None:
            box = picture.bounding_box()
            assert box is not None
            x, y = box["x"] + 180, box["y"] + 300
            touch(finger, "Start", (x, y))
            for share in (0.3, 0.7, 1):
                touch(finger, "Move", (x + share * across, y + share * down))
            touch(finger, "End")

        swipe(-120, 10)
        at(picture, f"layer {layer + 1}")
        swipe(120, -10)
        at(picture, f"layer {layer}")
        press(picture, "Enter")
        at(picture, f"head {layer} 0")
        swipe(-120, 10)
        at(picture, f"head {layer} 1")
        swipe(-10, -120)
        expect(page.get_by_test_id("stMain")).not_to_have_js_property("scrollTop", 0)
        at(picture, f"head {layer} 1")


def test_a_picture_that_is_drawn_anew_under_a_finger_lets_it_go_on(browser: Browser, site: Site):
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    with context, visitor(context) as page:
        picture = open_picture(page, site, f"{LINK}&one_pass_layer=3")
        press(picture, "Enter")
        layer = int(at(picture, "layer")[1])
        box = picture.bounding_box()
        assert box is not None
        x, y = box["x"] + 180, box["y"] + 300
        finger = page.context.new_cdp_session(page)
        touch(finger, "Start", (x, y))
        touch(finger, "Move", (x - 30, y), (x - 60, y))
        page.locator("figure.one-pass .switch-mask").evaluate("(button) => button.click()")
        at(picture, "layer")  # the server has answered
        touch(finger, "Move", (x - 120, y))
        touch(finger, "End")
        at(picture, f"layer {layer + 1}")


def test_a_step_is_not_lost_where_the_picture_is_drawn_anew_before_the_next_frame(
    own_page: Page, site: Site
):
    own_page.add_init_script(COUNT_EARS)
    picture = open_picture(own_page, site)
    press(picture, "Enter")
    layer = at(picture, "layer")[1]
    heard = own_page.evaluate("window.ears.length")
    own_page.evaluate("window.requestAnimationFrame = () => 1")  # no frame comes
    picture.press("ArrowRight")
    own_page.wait_for_function("(heard) => window.ears.length > heard", arg=heard, polling=50)
    expect(picture).to_have_attribute("data-place", re.compile(f"^layer {layer} 1 "))


def test_who_wants_no_motion_is_there_at_once(own_page: Page, site: Site):
    own_page.emulate_media(reduced_motion="reduce")
    picture = open_picture(own_page, site)
    walked = picture.evaluate(
        """async (canvas) => {
          canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          return canvas.hasAttribute("data-walking");
        }"""
    )
    assert walked is False
    at(picture, "layer")


def test_only_the_last_of_a_picture_s_drawings_listens(own_page: Page, site: Site):
    """Streamlit calls a drawing's function again for new data."""
    own_page.add_init_script(COUNT_EARS)
    picture = open_picture(own_page, site)
    press(picture, "Enter")
    at(picture, "layer")
    press(picture, "ArrowRight", "Enter")
    at(picture, "head")
    drawings, listening = own_page.evaluate(
        "[window.ears.length, window.ears.filter((signal) => !signal.aborted).length]"
    )
    assert drawings > 1
    assert listening == 1


def test_from_home_into_a_layer_and_back(page: Page, site: Site):
    open_page(page, site, f"/?home_text={TEXT.replace(' ', '+')}", "Attention Lab")
    picture = page.locator("figure.one-pass canvas")
    expect(picture).to_have_attribute("data-painted", "true")
    press(picture, "ArrowRight", "Enter")
    expect(page.get_by_role("heading", name="One pass", level=1)).to_be_visible()
    assert at(page.locator("figure.one-pass canvas"), "layer")[1] == "16"
    settled(page)
    page.keyboard.press("Escape")  # whoever walked in by keyboard goes on by keyboard
    assert at(page.locator("figure.one-pass canvas"), "whole")[1] == "16"
    expect(page.get_by_label("Text", exact=True)).to_have_value(TEXT)
    page.go_back()
    expect(page.get_by_role("heading", name="Attention Lab", level=1)).to_be_visible()
    settled(page)
    # as it was: what was chosen elsewhere meanwhile is not in its address
    assert page.url == f"{site.url}/?home_text={TEXT.replace(' ', '+')}"
    assert at(page.locator("figure.one-pass canvas"), "whole")[1] == "15"
    click(page.get_by_role("button", name="Tell me the story"))
    expect(page.locator("figure.one-pass .count")).to_have_text(f"1 of {N_CAPTIONS}")


def test_what_is_clicked_is_not_replaced_by_a_place_that_is_told_later(own_page: Page, site: Site):
    """A server that is busy hears only the later of two things that a picture tells it."""
    asked: list[str | bytes] = []
    own_page.on("websocket", lambda socket: socket.on("framesent", lambda sent: asked.append(sent)))
    own_page.clock.install()
    picture = open_picture(own_page, site, f"{LINK}&one_pass_top_k=1&one_pass_new=2")
    figure = own_page.locator("figure.one-pass")
    expect(figure.locator(".play")).to_have_attribute("data-pass", "3 done")
    settled(own_page)
    before = len(asked)
    picture.press("ArrowRight")  # its place is told when nothing has followed it for a while
    figure.get_by_role("button", name="Back to the text").press("Enter")
    own_page.clock.fast_forward(2_000)
    expect(figure.get_by_role("button", name="Let it write")).to_be_visible()
    settled(own_page)
    assert len(asked) == before + 1


def test_a_model_writes_on_with_a_cache_and_without(page: Page, site: Site):
    picture = open_picture(page, site, f"{LINK}&one_pass_top_k=1")
    figure = page.locator("figure.one-pass")
    click(figure.get_by_role("button", name="Let it write"))
    expect(page).to_have_url(re.compile("one_pass_new=6"))
    bar, says = figure.locator(".play"), figure.locator(".play-says")
    expect(bar).to_have_attribute("data-pass", "7 done")
    model = models.get(DECODER)
    prompt = list(model.tokenizer.encode(TEXT).ids)
    new = generate(model.core, prompt, max_new_tokens=6)
    last, n = figure.locator(".readout"), len(prompt) + 6
    expect(last).to_contain_text(f"token {n - 1} “")
    expect(last).to_contain_text("The last token would now be followed by")
    # (rows of the last pass, keys) with the cache, then without it
    products = [forward_flops(model.core.config, rows, n) // 2 / 1e9 for rows in (1, n)]
    expect(says).to_contain_text(f"With the cache: 1 token, {products[0] * 1000:.3g} million")
    expect(says).to_contain_text(f"Without it: {n} tokens, {products[1]:.3g} billion")
    press(figure.get_by_role("button", name="Previous pass"), "Enter")
    expect(says).to_contain_text("Pass 6 of 7. With the cache: 1 token")
    expect(last).not_to_contain_text("followed by")  # that is said of the last pass
    press(figure.get_by_label("KV cache"), "Space")  # plays from the first pass, without the cache
    expect(bar).to_have_attribute("data-pass", "7 done")
    expect(says).to_contain_text(f"Pass 7 of 7. Without it: {n} tokens")
    # the grown text is a pass like any other: one walks in
    press(picture, "Enter", "Enter", "Enter")
    row = int(at(picture, "matrix")[4])
    assert row < n
    ids = figure.evaluate("figure => figure.lastDrawn.map.labels.slice(-6)")
    assert [label.rstrip("₂₃₄₅") for label in ids] == list(token_text.pieces(model.tokenizer, new))
    press(figure.get_by_role("button", name="Back to the text"), "Enter")
    expect(figure.get_by_role("button", name="Let it write")).to_be_visible()
    assert "one_pass_new" not in page.url
