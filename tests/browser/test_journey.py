"""The journey of a token in a browser: told from first to last, and of a token that is clicked."""

import re

from playwright.sync_api import Locator, Page, WebSocket, expect

from benchmarks.browser import Site
from serving.one_pass import one_pass
from tests.helpers.browser import PROJECTOR, open_page, press
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.visitors import settled

TEXT = "Nine grey geese fly over the lake"
NAME = "The journey of a token"


def open_journey(page: Page, site: Site, model: str) -> Locator:
    text = TEXT.replace(" ", "+")
    link = f"/journey?journey_text={text}&journey_model={model}&journey_query=5&journey_key=2"
    open_page(page, site, link, NAME)
    expect(page.locator("figure.one-pass canvas")).to_have_attribute("data-painted", "true")
    settled(page)
    return page.locator("figure.one-pass")


def test_a_token_is_followed_from_stop_to_stop_and_through_a_lesson(page: Page, site: Site):
    figure = open_journey(page, site, ENCODER)
    following = figure.get_by_role("button", name="Next")
    for number in range(1, 14):
        expect(figure.locator(".count")).to_have_text(f"{number} of 13")
        expect(figure.locator("canvas")).to_have_attribute("data-place", re.compile(" 5$"))
        if number == 9:
            expect(page).to_have_url(re.compile(r"journey_at=matrix\+weights.*\+5\+8$"))
            settled(page)
            there, said = page.url, figure.locator(".caption-text").inner_text()
            figure.get_by_role("link", name="Learn this").click()
            expect(page.get_by_role("heading", name="Masking and dropout")).to_be_visible()
            settled(page)
            page.go_back()
            expect(figure.locator(".caption-text")).to_have_text(said)
            settled(page)
            assert page.url == there
        if number < 13:
            press(following, "Enter")
    expect(figure.locator(".caption-title")).to_have_text("A vector for every token")
    expect(following).to_be_disabled()
    press(figure.locator("canvas"), "Enter", "Enter")  # into a head: nothing can be switched there
    expect(figure.locator("canvas")).to_have_attribute("data-place", re.compile("^head "))
    expect(figure.get_by_role("button", name="off")).to_have_count(0)


def test_in_a_low_window_the_story_lies_below_the_picture(page: Page, site: Site):
    page.set_viewport_size(PROJECTOR)
    figure = open_journey(page, site, DECODER)
    canvas, story = figure.locator("canvas"), figure.locator(".story")
    for _ in range(5):  # the whole model, a layer, a head
        above, below = canvas.bounding_box(), story.bounding_box()
        assert above["y"] + above["height"] <= below["y"] + 1
        assert below["y"] + below["height"] <= PROJECTOR["height"]
        press(figure.get_by_role("button", name="Next"), "Enter")
        settled(page)


def test_who_reads_a_caption_leaves_the_server_in_peace(own_page: Page, site: Site):
    """Every run of the page tells the caption anew, which must not ask for another run."""
    asked: list[str | bytes] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda sent: asked.append(sent))

    own_page.on("websocket", listen)
    own_page.clock.install()
    figure = open_journey(own_page, site, ENCODER)
    assert "journey_at" not in own_page.url  # nobody has walked
    press(figure.get_by_role("button", name="Next"), "Enter")
    expect(own_page).to_have_url(re.compile(r"journey_at=whole\+.*\+1$"))
    settled(own_page)
    before = len(asked)
    assert before
    own_page.clock.fast_forward(2_000)  # what waits for its time is done now
    settled(own_page)
    assert len(asked) == before


def test_a_run_that_changes_nothing_in_the_picture_does_not_move_it(own_page: Page, site: Site):
    figure = open_journey(own_page, site, ENCODER)
    settled(own_page)
    figure.locator("canvas").evaluate(
        """canvas => new MutationObserver(() => { canvas.dataset.moved = "true"; })
          .observe(canvas, { attributeFilter: ["data-walking"] })"""
    )
    own_page.get_by_role("radio", name="What training changes").click()
    expect(own_page.get_by_text("numbers, and training changes")).to_be_visible()
    settled(own_page)
    expect(figure.locator("canvas")).not_to_have_attribute("data-moved", "true")
    press(figure.locator("canvas"), "Enter")  # what moves it would have been seen
    expect(figure.locator("canvas")).to_have_attribute("data-moved", "true")


def test_a_click_on_a_token_follows_it(page: Page, site: Site):
    figure = open_journey(page, site, DECODER)
    labels = one_pass(DECODER, TEXT).run.tokens.labels
    press(figure.get_by_role("button", name="Next"), *["Enter"] * 3)
    expect(figure.locator(".caption-text")).to_contain_text(f"“{labels[5]}”")
    # the names of the tokens stand in a column at the left, over the height of the layers
    canvas = figure.locator("canvas")
    box = canvas.bounding_box()
    assert box is not None
    canvas.hover(position={"x": 60, "y": 40})
    for y in range(40, int(box["height"]), 8):
        canvas.hover(position={"x": 60, "y": y})
        if (canvas.get_attribute("data-place") or "").endswith(" 3"):
            canvas.click(position={"x": 60, "y": y})
            break
    expect(page).to_have_url(re.compile("journey_query=3"))
    expect(figure.locator(".count")).to_have_text("4 of 15")  # the story stays where it was
    expect(figure.locator(".caption-text")).to_contain_text(f"“{labels[3]}”")
