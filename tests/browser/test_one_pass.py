"""One pass in a browser: pointing, opening, explaining, the tour, a model that writes."""

import re
from collections.abc import Callable, Iterator
from urllib.parse import quote_plus

import pytest
import torch
from playwright.sync_api import Browser, CDPSession, Locator, Page, WebSocket, expect

from attention_core import generate
from attention_core.analysis.switched_parts import Switched, switched_pass
from attention_core.costs.formulas import forward_flops
from benchmarks.browser import Server, Site
from serving import models, token_text
from serving.flow import Carried, flow_of, strongest_into
from serving.one_pass import OnePass, one_pass, open_head
from tests.helpers.browser import (
    PHONE,
    PROJECTOR,
    click,
    expect_parameter,
    open_page,
    press,
    type_text,
    unfold,
    written,
)
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.pass_figure import (
    LINK,
    TEXT,
    at,
    click_at,
    named,
    open_picture,
    painted,
    point_at,
    read,
    selected,
    spot,
    word,
)
from tests.helpers.visitors import opened_offline, settled, visitor

OWN = "The cup fell off the shelf because it was too heavy"
N_CAPTIONS = 15
GEESE = 3  # the token "geese" of TEXT
MOST_DETAIL = 6
MEGABYTE = 1 << 20


# A signal for each drawing of a picture that has listened to the keyboard.
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


def strongest(passed: OnePass, token: int | None = None) -> Carried:
    """The strongest curve into a token, or of all."""
    edge = strongest_into(passed.run, flow_of(passed.run), token)
    assert edge is not None
    return edge


def label(picture: Locator, token: int) -> str:
    """The text of a token in the picture."""
    found: list[str] = picture.evaluate("canvas => canvas.closest('figure').lastDrawn.map.labels")
    return found[token]


def percent(text: str) -> float:
    return written(text.removesuffix("%")) / 100


# ---- pointing, clicking, the keyboard


def test_into_a_cell_and_out_by_the_keyboard(page: Page, site: Site, passed: OnePass):
    picture = open_picture(page, site)
    out = page.locator("figure.one-pass .out")
    expect(out).to_be_hidden()
    press(picture, "ArrowUp")
    assert selected(picture) == len(passed.run.tokens) - 2
    press(picture, "Enter")
    layer, head = map(int, at(picture, "layer")[1:3])
    press(picture, "ArrowLeft", "Enter", "Enter")  # the head before, then its weights
    at(picture, "matrix")
    press(picture, "ArrowLeft", "ArrowUp", "ArrowUp")
    *_, row, column, _ = at(picture, "matrix")
    expected = open_head(passed.run, layer, head - 1).weights[int(row), int(column)]
    labels = [passed.run.tokens.labels[int(token)] for token in (row, column)]
    shown = read(picture, rf"^“{labels[0]}” → “{labels[1]}”: ([\d.]+%) = ")
    assert percent(shown) == pytest.approx(float(expected), rel=0.05)
    place = rf"one_pass_at=matrix\+weights\+{layer}\+{head - 1}\+{row}\+{column}\+"
    expect(page).to_have_url(re.compile(place))
    press(picture, "Escape")
    at(picture, "head")
    press(picture, "Escape")
    at(picture, "layer")
    press(out, "Enter")
    at(picture, "whole")
    expect(out).to_be_hidden()


def test_the_arrow_keys_go_through_the_curves_of_a_word_and_enter_opens_one(
    page: Page, site: Site, passed: OnePass
):
    picture = open_picture(page, site)
    edge = strongest(passed)
    press(picture, *["ArrowUp"] * (len(passed.run.tokens) - 1 - edge.query))
    assert selected(picture) == edge.query
    for _ in range(len(flow_of(passed.run).edges)):
        press(picture, "ArrowRight")
        if re.match(named(passed, edge), read(picture, ".*")):
            break
    press(picture, "Enter")
    place = [
        "head",
        *map(str, (edge.layer, edge.head)),
        "weights",
        *map(str, (edge.query, edge.key)),
    ]
    assert at(picture, "head")[:6] == place


def test_pointing_at_a_word_is_read_and_leaves_the_selection(
    page: Page, site: Site, passed: OnePass
):
    picture = open_picture(page, site)
    last = selected(picture)
    text = point_at(picture, "“geese” takes ", "item", f"word {GEESE}", 0.5, 0.5)
    assert "“lake”" not in text
    assert selected(picture) == last
    page.mouse.move(0, 0)
    read(picture, "^“lake” takes ")
    assert selected(picture) == last == len(passed.run.tokens) - 1


def test_a_clicked_word_stays_selected_until_another_one_is(page: Page, site: Site):
    picture = open_picture(page, site)
    click_at(picture, "“geese” takes ", "item", f"word {GEESE}", 0.5, 0.5)
    assert selected(picture) == GEESE
    page.mouse.move(0, 0)
    read(picture, "^“geese” takes ")
    expect(page).to_have_url(re.compile(rf"one_pass_at=whole\+.*\+{GEESE}\+-1\+\d\+-1$"))
    # opened and back again
    click_at(picture, "Layer 4 at “geese”: ", "layer", 4)
    assert at(picture, "layer")[1] == "4"
    press(picture, "Enter")
    at(picture, "head")
    press(picture, "Escape", "Escape")
    at(picture, "whole")
    assert selected(picture) == GEESE
    # a click beside everything
    page.locator("figure.one-pass .subtitle").click()
    assert selected(picture) == GEESE
    read(picture, "^“geese” takes ")
    # another text, where the same word is somewhere else
    type_text(page, "Text", "Look, six small geese swim there")
    expect(page.locator("figure.one-pass .readout")).to_have_text(re.compile("geese"))
    settled(page)
    assert label(picture, selected(picture)) == "geese"
    page.mouse.move(0, 0)
    read(picture, "^“geese” takes ")
    expect(page.get_by_text("add to “\u2068geese\u2069” in every layer")).to_be_visible()
    page.reload()
    assert label(painted(page), selected(picture)) == "geese"


def test_an_open_head_stays_open_when_the_text_changes(page: Page, site: Site, passed: OnePass):
    picture = open_picture(page, site)
    edge = strongest(passed)
    click_at(picture, named(passed, edge), "curve", edge.layer, edge.query, edge.key, 0.5)
    at(picture, "head")
    type_text(page, "Text", "Look, six small geese swim there")
    expect(page.locator("figure.one-pass .subtitle")).to_contain_text("7 tokens")
    page.mouse.move(0, 0)
    _, layer, head, matrix, row, column, _ = at(picture, "head")
    expected = open_head(
        one_pass(DECODER, "Look, six small geese swim there").run, int(layer), int(head)
    ).weights[int(row), int(column)]
    assert percent(read(picture, r": ([\d.]+%) = ")) == pytest.approx(float(expected), rel=0.05)


def test_a_click_on_a_curve_opens_its_head_at_its_pair(page: Page, site: Site, passed: OnePass):
    picture = open_picture(page, site)
    edge = strongest(passed)
    where = ("curve", edge.layer, edge.query, edge.key, 0.5)
    text = point_at(picture, named(passed, edge), *where)
    share = percent(text.split("”, ")[1].split(" ")[0])
    assert share == pytest.approx(edge.share, rel=0.05)
    assert f"Carried by L{edge.layer}H{edge.head} (" in text
    click_at(picture, named(passed, edge), *where)
    page.mouse.move(0, 0)
    place = [str(number) for number in (edge.layer, edge.head)]
    assert at(picture, "head")[1:6] == [*place, "weights", str(edge.query), str(edge.key)]
    expected = open_head(passed.run, edge.layer, edge.head).weights[edge.query, edge.key]
    shown = percent(read(picture, r": ([\d.]+%) = "))
    assert shown == pytest.approx(float(expected), rel=0.05)
    expect(page.locator("figure.one-pass .where")).to_contain_text(
        f"Layer {edge.layer} › Head L{edge.layer}H{edge.head}"
    )


def test_a_click_on_a_dot_opens_its_layer(page: Page, site: Site, passed: OnePass):
    picture = open_picture(page, site)
    mlp = flow_of(passed.run).mlp
    layer, token = divmod(int(mlp.argmax()), mlp.shape[1])
    names = f"Layer {layer}: .* of the update of “{re.escape(passed.run.tokens.labels[token])}” "
    click_at(picture, names, "dot", layer, token)
    assert at(picture, "layer")[1] == str(layer)


def curves_of_the_selected_word(picture: Locator) -> list[str]:
    """What is read of each curve that leads to the word, from the first layer to the last."""
    found: list[str] = picture.evaluate(
        """canvas => {
          const readout = canvas.closest("figure").querySelector(".readout"), found = new Set();
          for (let before = -1; found.size > before; ) {
            before = found.size;
            canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
            found.add(readout.textContent);
          }
          return [...found];
        }"""
    )
    return found


def test_show_more_draws_weaker_curves_and_is_in_the_address(
    page: Page, site: Site, passed: OnePass
):
    picture = open_picture(page, site)
    detail, pixels = page.locator("figure.one-pass .detail"), "canvas => canvas.toDataURL()"
    press(detail, "Home")  # the fewest
    expect(page).to_have_url(re.compile(r"one_pass_at=whole\+.*\+0\+-1$"))
    settled(page)
    few, before = curves_of_the_selected_word(picture), picture.evaluate(pixels)
    press(detail, "End")
    expect(page).to_have_url(re.compile(rf"one_pass_at=whole\+.*\+{MOST_DETAIL}\+-1$"))
    settled(page)
    assert picture.evaluate(pixels) != before
    edges, last = flow_of(passed.run).edges, len(passed.run.tokens) - 1
    own = edges[(edges[:, 1] == last) & (edges[:, 2] != last)]
    assert len(few) < len(own) == len(curves_of_the_selected_word(picture))


# ---- why a next word is likely


def test_why_a_word_is_next_and_what_a_share_opens(page: Page, site: Site, passed: OnePass):
    picture, figure = open_picture(page, site), page.locator("figure.one-pass")
    logits = passed.next_token.logits.tolist()
    panel = figure.locator(".why")
    expect(panel).to_be_hidden()
    question = figure.get_by_role("button", name="Why “")
    expect(question).to_contain_text(passed.next_token.tokens[0])
    press(question, "Enter")
    expect(panel).to_be_visible()
    assert len(panel.locator(".shares li").all()) > 6
    assert float(panel.get_attribute("data-sum") or 0) == pytest.approx(logits[0], rel=1e-5)
    expect(panel.locator(".why-sum")).to_contain_text(f"{logits[0]:.4g}".rstrip("0"))
    expect(page).to_have_url(re.compile(r"one_pass_at=whole\+.*\+0$"))
    # another word, then against the likeliest one
    click_at(picture, "The model gives “.*” a probability of ", "item", "bar 2", 0.5, 0.5)
    expect(panel.locator(".why-word")).to_have_value("2")
    panel.locator(".why-other").select_option("0")
    lead = float(panel.get_attribute("data-sum") or 0)
    assert lead == pytest.approx(logits[2] - logits[0], abs=1e-5 * abs(logits[0]))
    # a head opens where it reads most
    share = panel.locator(".shares button").first
    layer, head, key = re.match(  # type: ignore[union-attr]
        r"L(\d+)H(\d+) reads “\u2068(.*)\u2069”", share.inner_text()
    ).groups()
    press(share, "Enter")
    _, at_layer, at_head, matrix, row, column, _ = at(picture, "head")
    assert (at_layer, at_head, matrix) == (layer, head, "weights")
    assert int(row) == len(passed.run.tokens) - 1
    assert passed.run.tokens.labels[int(column)] == key
    press(picture, "Escape", "Escape", "Escape")
    expect(panel).to_be_hidden()


def test_a_link_opens_with_its_curves_and_its_explanation(page: Page, site: Site, passed: OnePass):
    place = f"whole weights 3 2 0 0 {GEESE} -1 {MOST_DETAIL} 1"
    picture = open_picture(
        page, site, f"{LINK}&one_pass_layer=3&one_pass_head=2&one_pass_at={quote_plus(place)}"
    )
    figure = page.locator("figure.one-pass")
    expect(figure.locator(".detail")).to_have_value(str(MOST_DETAIL))
    expect(figure.locator(".why")).to_be_visible()
    expect(figure.locator(".why-word")).to_have_value("1")
    assert selected(picture) == GEESE
    picture = open_picture(
        page, site, f"{LINK}&one_pass_layer=3&one_pass_head=2&one_pass_at=head+q+3+2+1+5+2+-1"
    )  # of an older page, which ends before them
    assert at(picture, "head") == ["head", "3", "2", "q", "1", "5", "2"]
    expect(figure.locator(".why")).to_be_hidden()


# ---- the tour


def test_the_tour_from_first_to_last_with_a_lesson_and_back(page: Page, site: Site):
    picture, figure = open_picture(page, site), page.locator("figure.one-pass")
    press(figure.get_by_role("button", name="Start the tour"), "Enter")
    following = figure.get_by_role("button", name="Next", exact=True)
    titles = set()
    for number in range(1, N_CAPTIONS + 1):
        expect(figure.locator(".count")).to_have_text(f"{number} of {N_CAPTIONS}")
        titles.add(figure.locator(".caption-title").inner_text())
        if number == 4:  # the curve that it is about is marked
            first = picture.evaluate("canvas => canvas.closest('figure').lastDrawn.map.first")
            pair = f"“{label(picture, first['column'])}” → “{label(picture, first['row'])}”"
            read(picture, f"^Layer {first['layer']}: {pair}, ")
        if number == 9:
            expect(page).to_have_url(re.compile(r"one_pass_at=matrix\+weights.*\+8\+\d\+-1$"))
            settled(page)
            there, text = page.url, figure.locator(".caption-text").inner_text()
            figure.get_by_role("link", name="Learn more").click()
            expect(page.get_by_role("heading", name="Masking and dropout")).to_be_visible()
            expect(page.get_by_label("Sentence", exact=True)).to_have_value(TEXT)
            settled(page)
            page.go_back()
            expect(figure.locator(".caption-text")).to_have_text(text)
            settled(page)
            assert page.url == there
        if number < N_CAPTIONS:
            press(following, "Enter")
    assert len(titles) == N_CAPTIONS
    expect(following).to_be_disabled()
    press(figure.get_by_role("button", name="End the tour"), "Enter")
    expect(figure.locator(".story")).to_be_hidden()
    expect(figure.get_by_role("button", name="Start the tour")).to_be_visible()


def test_the_tour_shows_its_own_head_whatever_was_opened_before(
    page: Page, site: Site, passed: OnePass
):
    picture = open_picture(page, site)
    figure = page.locator("figure.one-pass")
    click_at(picture, "Layer 4 at “lake”: ", "layer", 4)
    at(picture, "layer")
    first = picture.evaluate("canvas => canvas.closest('figure').lastDrawn.map.first")
    assert first["layer"] != 4
    press(figure.get_by_role("button", name="Start the tour"), "Enter")
    for _ in range(4):
        press(figure.get_by_role("button", name="Next", exact=True), "Enter")
    assert at(picture, "layer")[1] == str(first["layer"])


def test_in_a_low_window_the_tour_stands_below_all_words(page: Page, site: Site):
    page.set_viewport_size(PROJECTOR)
    picture, figure = open_picture(page, site), page.locator("figure.one-pass")
    last = f"word {selected(picture)}"
    press(figure.get_by_role("button", name="Start the tour"), "Enter")
    for _ in range(5):  # the whole model, then a layer
        settled(page)
        story = figure.locator(".story")
        expect(story).to_be_in_viewport(ratio=1)
        above, below = picture.bounding_box(), story.bounding_box()
        assert above is not None
        assert below is not None
        assert above["y"] + spot(picture, "item", last, 0, 1)["y"] <= below["y"]
        press(figure.get_by_role("button", name="Next", exact=True), "Enter")


def test_reading_a_caption_asks_the_server_for_nothing(own_page: Page, site: Site):
    """Every run of the page sends the captions again, which must not ask for another run."""
    asked: list[str | bytes] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda sent: asked.append(sent))

    own_page.on("websocket", listen)
    own_page.clock.install()
    open_picture(own_page, site)
    figure = own_page.locator("figure.one-pass")
    assert "one_pass_at" not in own_page.url  # nothing was opened or selected
    press(figure.get_by_role("button", name="Start the tour"), "Enter")
    press(figure.get_by_role("button", name="Next", exact=True), "Enter")
    expect(own_page).to_have_url(re.compile(r"one_pass_at=whole\+.*\+1\+\d\+-1$"))
    settled(own_page)
    before = len(asked)
    assert before
    own_page.clock.fast_forward(2_000)  # what waits for its time is done now
    settled(own_page)
    assert len(asked) == before


# ---- parts switched off, sampling, encoders


def test_a_head_is_switched_off_and_on_again(page: Page, site: Site, passed: OnePass):
    picture = open_picture(page, site)
    press(picture, "Enter", "Enter")
    _, layer, head, *_ = at(picture, "head")
    press(page.get_by_role("button", name="Switch head off"), "Enter")
    expect(page).to_have_url(re.compile(f"one_pass_off=L{layer}H{head}"))
    expect(page.get_by_role("button", name="Switch head on")).to_be_visible()
    at(picture, "head")  # it stays open
    press(picture, "Escape", "Escape")
    at(picture, "whole")
    switched = Switched(heads=frozenset({(int(layer), int(head))}))
    ids = torch.tensor([passed.run.tokens.ids])
    core = models.get(DECODER).core
    with torch.inference_mode():
        last, layers = switched_pass(core, ids, switched)
        expected = (last[0, -1] @ core.unembedding).softmax(dim=-1).max()
    output = layers[int(layer)].attention.output
    assert output is not None
    text = point_at(picture, f"Layer {layer} at “lake”: ", "layer", int(layer))
    shown = re.search(r"attention adds a vector of length ([\d.]+) ", text)
    assert written(shown[1]) == pytest.approx(float(output[0, -1].norm()), rel=5e-3)  # type: ignore[index]
    likeliest = point_at(
        picture, "The model gives “.*” a probability of ", "item", "bar 0", 0.5, 0.5
    )
    found = re.search(r"probability of ([\d.]+%)\.", likeliest)
    assert percent(found[1]) == pytest.approx(float(expected), rel=0.05)  # type: ignore[index]
    press(page.get_by_role("button", name="Switch all on"), "Enter")
    expect(page).not_to_have_url(re.compile("one_pass_off"))
    expect(page.get_by_role("button", name="Switch all on")).to_be_hidden()


def test_temperature_and_top_k_move_the_bars(page: Page, site: Site):
    picture = open_picture(page, site)
    pixels = "canvas => canvas.toDataURL()"
    pictures = {picture.evaluate(pixels)}
    for control, key, value in ((".temperature", "ArrowRight", "1.1"), (".top-k", "Home", "1")):
        press(page.locator(f"figure.one-pass {control}"), key)
        expect(page.locator(f"figure.one-pass {control} + output")).to_have_text(value)
        pictures.add(picture.evaluate(pixels))
    assert len(pictures) == 3
    # of one token that is left the probability is 1
    point_at(picture, r"The model gives “.*” a probability of 100%\.", "item", "bar 0", 0.5, 0.5)
    expect_parameter(page, "one_pass_top_k", "1")


def test_an_encoder_predicts_nothing_and_hides_nothing(page: Page, site: Site):
    picture = open_picture(page, site, f"/one-pass?one_pass_model={ENCODER}")
    expect(page.locator("figure.one-pass .next")).to_be_hidden()
    expect(page.locator("figure.one-pass .explain")).to_be_hidden()
    press(picture, "Enter", "Enter")
    at(picture, "head")
    expect(page.get_by_role("button", name="Switch mask off")).to_be_hidden()
    expect(page.get_by_role("button", name="Switch ÷ √d off")).to_be_visible()


# ---- the picture as one file


@pytest.fixture
def saved_walk(page: Page, site: Site, browser: Browser) -> Iterator[Page]:
    """The walk as one file, opened without a network; requests and complaints fail the test."""
    open_picture(page, site)
    unfold(page, "Download or share")
    with page.expect_download() as download:
        click(page.get_by_role("button", name="Offline copy (HTML)"))
    context = browser.new_context(viewport=PROJECTOR, color_scheme="dark")
    with opened_offline(context, download.value) as saved:
        yield saved


def test_the_walk_as_one_file_goes_into_a_cell_and_asks_for_nothing(
    saved_walk: Page, passed: OnePass
):
    picture = saved_walk.locator("figure.one-pass canvas")
    expect(picture).to_have_attribute("data-painted", "true")
    figure = saved_walk.locator("figure.one-pass")
    edge = strongest(passed)
    click_at(picture, named(passed, edge), "curve", edge.layer, edge.query, edge.key, 0.5)
    saved_walk.mouse.move(0, 0)
    at(picture, f"head {edge.layer} {edge.head} weights {edge.query} {edge.key}")
    press(picture, "Enter", "ArrowLeft")
    row, column = edge.query, max(edge.key - 1, 0)
    at(picture, f"matrix {edge.layer} {edge.head} weights {row} {column}")
    expected = open_head(passed.run, edge.layer, edge.head).weights[row, column]
    labels = passed.run.tokens.labels
    shown = read(picture, rf"^“{labels[row]}” → “{labels[column]}”: ([\d.]+%) = ")
    assert percent(shown) == pytest.approx(float(expected), rel=0.05)
    expect(figure.get_by_role("button", name="Switch head")).to_be_hidden()
    press(picture, "Escape", "Escape", "Escape")
    press(figure.locator(".explain"), "Enter")
    total = float(figure.locator(".why").get_attribute("data-sum") or 0)
    assert total == pytest.approx(passed.next_token.logits[0], rel=1e-5)
    press(figure.get_by_role("button", name="Start the tour"), "Enter")
    press(figure.get_by_role("button", name="Next", exact=True), *["Enter"] * 5)
    at(picture, "head")
    expect(figure.get_by_role("link", name="Learn more")).to_be_hidden()


# ---- phones, projectors, full screen


def test_on_a_phone_layers_go_down_and_a_tap_selects_opens_and_explains(phone: Page, site: Site):
    picture = open_picture(phone, site)
    box = picture.bounding_box()
    assert box is not None
    assert box["width"] <= PHONE["width"] < box["height"]
    picture.click(position=word(picture, GEESE))
    assert selected(picture) == GEESE
    picture.click(position=spot(picture, "item", "bar 1", 0.3, 0.5))
    expect(phone.locator("figure.one-pass .why-word")).to_have_value("1")
    middle = spot(picture, "item", "slab 7", 0.5, 0.5)["y"]
    picture.click(position={"x": 8, "y": middle})  # the number of a layer, left of its rows
    assert at(picture, "layer")[1] == "7"
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
        painted(page)
        expect(page.locator("figure.one-pass .readout")).to_be_in_viewport(ratio=1)
    context.close()


def test_full_screen_it_has_larger_type_until_the_browser_ends_that(page: Page, site: Site):
    picture = open_picture(page, site)
    on_the_page = height_and_zoom(picture)
    readout, button = page.locator("figure.one-pass .readout"), page.locator(".present")
    size = "element => parseFloat(getComputedStyle(element).fontSize)"
    letters = readout.evaluate(size)
    expect(button).to_have_text("Full screen")
    press(button, "Enter")
    expect(button).to_have_text("Exit full screen")
    expect(page.locator("figure.one-pass:fullscreen")).to_be_visible()
    height, zoom = height_and_zoom(picture)
    assert height >= 0.9 * page.evaluate("innerHeight")
    assert (on_the_page[1], zoom) == (1, 1.5)
    assert readout.evaluate(size) == pytest.approx(1.5 * letters)
    page.evaluate("document.exitFullscreen()")
    expect(button).to_have_text("Full screen")
    assert height_and_zoom(picture) == on_the_page


def test_without_a_screen_it_covers_the_window_and_escape_goes_back_step_by_step(
    page: Page, site: Site
):
    picture, button = open_picture(page, site), page.locator(".present")
    page.evaluate("void (Element.prototype.requestFullscreen = async () => { throw Error(); })")
    press(button, "Enter")
    expect(button).to_have_text("Exit full screen")
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
    expect(button).to_have_text("Exit full screen")
    page.keyboard.press("Escape")
    expect(button).to_have_text("Full screen")
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
        picture = open_picture(
            page, site, f"{LINK}&one_pass_layer=3&one_pass_head=0&one_pass_at=layer+q+3+0+0+0+0+-1"
        )
        finger = page.context.new_cdp_session(page)
        at(picture, "layer 3")

        def swipe(across: int, down: int) -> None:
            box = picture.bounding_box()
            assert box is not None
            x, y = box["x"] + 180, min(box["y"] + 300, PHONE["height"] - 60)
            touch(finger, "Start", (x, y))
            for share in (0.3, 0.7, 1):
                touch(finger, "Move", (x + share * across, y + share * down))
            touch(finger, "End")

        swipe(-120, 10)
        at(picture, "layer 4")
        swipe(120, -10)
        at(picture, "layer 3")
        press(picture, "Enter")
        at(picture, "head 3 0")
        swipe(-120, 10)
        at(picture, "head 3 1")
        swipe(-10, -120)
        expect(page.get_by_test_id("stMain")).not_to_have_js_property("scrollTop", 0)
        at(picture, "head 3 1")


def test_a_picture_that_is_drawn_anew_under_a_finger_lets_it_go_on(browser: Browser, site: Site):
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    with context, visitor(context) as page:
        picture = open_picture(page, site)
        press(picture, "Enter")
        layer = int(at(picture, "layer")[1])
        box = picture.bounding_box()
        assert box is not None
        x, y = box["x"] + 180, min(box["y"] + 300, PHONE["height"] - 60)
        finger = page.context.new_cdp_session(page)
        touch(finger, "Start", (x, y))
        touch(finger, "Move", (x - 30, y), (x - 60, y))
        page.locator("figure.one-pass .switch-mask").evaluate("(button) => button.click()")
        at(picture, "layer")  # the server has answered
        touch(finger, "Move", (x - 120, y))
        touch(finger, "End")
        at(picture, f"layer {layer + 1}")


# ---- drawn again and again, and without motion


def test_a_step_is_not_lost_where_the_picture_is_drawn_anew_before_the_next_frame(
    own_page: Page, site: Site
):
    own_page.add_init_script(COUNT_EARS)
    picture = open_picture(own_page, site)
    press(picture, "Enter")
    layer, head = map(int, at(picture, "layer")[1:3])
    heard = own_page.evaluate("window.ears.length")
    own_page.evaluate("window.requestAnimationFrame = () => 1")  # no frame comes
    picture.press("ArrowLeft")
    own_page.wait_for_function("(heard) => window.ears.length > heard", arg=heard, polling=50)
    expect(picture).to_have_attribute("data-place", re.compile(f"^layer {layer} {head - 1} "))


def test_without_motion_what_is_opened_is_there_at_once(own_page: Page, site: Site):
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
    at(picture, "layer")


def test_only_the_last_of_a_picture_s_drawings_listens(own_page: Page, site: Site):
    """Streamlit calls a drawing's function again for new data."""
    own_page.add_init_script(COUNT_EARS)
    picture = open_picture(own_page, site)
    press(picture, "Enter")
    at(picture, "layer")
    press(picture, "ArrowLeft", "Enter")
    at(picture, "head")
    drawings, listening = own_page.evaluate(
        "[window.ears.length, window.ears.filter((signal) => !signal.aborted).length]"
    )
    assert drawings > 1
    assert listening == 1


def test_a_run_that_changes_nothing_in_the_picture_does_not_move_it(own_page: Page, site: Site):
    picture = open_picture(own_page, site)
    picture.evaluate(
        """canvas => new MutationObserver(() => { canvas.dataset.moved = "true"; })
          .observe(canvas, { attributeFilter: ["data-walking"] })"""
    )
    own_page.get_by_role("radio", name="What training changes").click()
    expect(own_page.get_by_text("numbers, and training changes")).to_be_visible()
    settled(own_page)
    expect(picture).not_to_have_attribute("data-moved", "true")
    press(picture, "Enter")  # what moves it would have been seen
    expect(picture).to_have_attribute("data-moved", "true")


# ---- from Home


def test_home_paints_its_picture_before_any_model_is_loaded(
    fresh_site: Callable[..., Server], newcomer: Page
):
    server = fresh_site(ATTENTION_LAB_WARMUP="off")
    newcomer.goto(server.url)
    painted(newcomer)
    expect(newcomer.locator("figure.one-pass .title")).to_contain_text("The model predicts")
    assert server.memory().kept < 10 * MEGABYTE  # SmolLM2 has some hundred


def test_which_words_it_attends_to_takes_a_text_and_a_pointer_from_home(page: Page, site: Site):
    open_page(page, site, "/", "Attention Lab")
    type_text(page, "Type a text", OWN)
    picture = painted(page)
    passed = one_pass(DECODER, OWN)
    it = passed.run.tokens.labels.index("it")
    edges = flow_of(passed.run).edges
    into = edges[(edges[:, 1] == it) & (edges[:, 2] != it)]
    top = passed.run.tokens.labels[int(into[into[:, 3].argmax(), 2])]
    text = point_at(picture, f"“it” gets the most from “{top}” ", "item", f"word {it}", 0.5, 0.5)
    assert text.count(" in layer ") == 3


def test_a_curve_on_home_leads_to_its_pair_in_the_visitor_s_text(page: Page, site: Site):
    open_page(page, site, f"/?home_text={quote_plus(TEXT)}", "Attention Lab")
    picture, passed = painted(page), one_pass(DECODER, TEXT)
    edge = strongest(passed)
    click_at(picture, named(passed, edge), "curve", edge.layer, edge.query, edge.key, 0.5)
    expect(page.get_by_role("heading", name="One pass", level=1)).to_be_visible()
    picture = page.locator("figure.one-pass canvas")
    place = ["head", str(edge.layer), str(edge.head), "weights", str(edge.query), str(edge.key)]
    assert at(picture, "head")[:6] == place
    expect(page.get_by_label("Text", exact=True)).to_have_value(TEXT)


def test_from_home_by_the_keyboard_and_back(page: Page, site: Site):
    home = f"/?home_text={quote_plus(TEXT)}"
    open_page(page, site, home, "Attention Lab")
    picture = painted(page)
    layer = (picture.get_attribute("data-place") or "").split()[1]
    press(picture, "Enter")
    expect(page.get_by_role("heading", name="One pass", level=1)).to_be_visible()
    picture = page.locator("figure.one-pass canvas")
    assert at(picture, "layer")[1] == layer
    page.keyboard.press("Escape")  # the focus is in the new picture
    at(picture, "whole")
    expect(page.get_by_label("Text", exact=True)).to_have_value(TEXT)
    page.go_back()
    expect(page.get_by_role("heading", name="Attention Lab", level=1)).to_be_visible()
    settled(page)
    # as it was: what was chosen elsewhere meanwhile is not in its address
    assert page.url == site.url + home


# ---- a model that writes on


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
    picture.press("ArrowUp")  # its place is told when nothing has followed it for a while
    figure.get_by_role("button", name="Go back to the text").press("Enter")
    own_page.clock.fast_forward(2_000)
    expect(figure.get_by_role("button", name="Continue writing")).to_be_visible()
    settled(own_page)
    assert len(asked) == before + 1


def test_a_model_continues_the_text_with_a_cache_and_without(page: Page, site: Site):
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
    # (rows of the last step, keys) with the cache, then without it
    products = [forward_flops(model.core.config, rows, n) // 2 / 1e9 for rows in (1, n)]
    expect(account).to_contain_text(f"With the cache: 1 token, {products[0] * 1000:.3g} million")
    expect(account).to_contain_text(f"Without it: {n} tokens, {products[1]:.3g} billion")
    press(figure.get_by_role("button", name="Previous step"), "Enter")
    expect(account).to_contain_text("Step 6 of 7. With the cache: 1 token")
    expect(figure.locator(".title")).to_have_text(f"The model reads “{label(picture, n - 2)}”")
    press(figure.get_by_label("KV cache"), "Space")  # plays from the first step, without the cache
    expect(bar).to_have_attribute("data-pass", "7 done")
    expect(account).to_contain_text(f"Step 7 of 7. Without it: {n} tokens")
    # the longer text is a pass like any other: its parts can be opened
    press(picture, "Enter", "Enter", "Enter")
    row = int(at(picture, "matrix")[4])
    assert row < n
    ids = figure.evaluate("figure => figure.lastDrawn.map.labels.slice(-6)")
    assert [each.rstrip("₂₃₄₅") for each in ids] == list(token_text.pieces(model.tokenizer, new))
    press(figure.get_by_role("button", name="Go back to the text"), "Enter")
    expect(figure.get_by_role("button", name="Continue writing")).to_be_visible()
    assert "one_pass_new" not in page.url
