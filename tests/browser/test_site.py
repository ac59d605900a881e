"""The main paths, as a visitor walks them: type, choose, hover, generate, stop, share a link."""

import re
import socket
import urllib.parse
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from benchmarks.browser import Server, Site
from tests.helpers.browser import (
    PATHS,
    SENTENCE,
    click,
    heatmap,
    last_number,
    metric_value,
    open_page,
    press,
    read_by_keyboard,
    read_cell,
    set_slider,
    settings,
    slider,
    type_text,
)
from tests.helpers.bundled_models import DECODER, FIRST_BERT, FIRST_GPT2, attention
from tests.helpers.visitors import settled

Start = Callable[..., Server]


def test_two_heads_on_a_sentence_of_one_s_own(page: Page, site: Site):
    link = "/side-by-side?side_by_side_a_layer=3&side_by_side_a_head=1"
    open_page(page, site, link, "Side by side")
    type_text(page, "Sentence", SENTENCE)
    set_slider(page, "Layer", 0, 2)  # 3 -> 5
    set_slider(page, "Head", 0, 6)  # 1 -> 7
    figure = heatmap(page, "BERT novels, L5H7")
    expect(figure).to_be_visible()
    expected, tokens = attention(FIRST_BERT, SENTENCE, 5, 7)
    n = len(tokens.ids)
    for row, column in ((2, 5), (n - 1, 0), (0, n - 1)):
        text = read_cell(figure, row, column)
        assert f"“{tokens.labels[row]}” → “{tokens.labels[column]}”: " in text
        shown = last_number(text)
        assert shown == pytest.approx(float(expected[row, column]), rel=1e-5)


def test_a_causal_head_shows_its_triangle(page: Page, site: Site):
    open_page(
        page,
        site,
        f"/side-by-side?side_by_side_text={urllib.parse.quote(SENTENCE)}"
        "&side_by_side_b_layer=3&side_by_side_b_head=1",
        "Side by side",
    )
    figure = heatmap(page, "GPT-2 novels, L3H1")
    expect(figure).to_be_visible()
    expected, _ = attention(FIRST_GPT2, SENTENCE, 3, 1)
    assert "masked" in read_cell(figure, 1, 4)
    shown = last_number(read_cell(figure, 4, 1))
    assert shown == pytest.approx(float(expected[4, 1]), rel=1e-5)
    expect(figure.get_by_text("masked", exact=False).first).to_be_visible()


def test_reading_a_head_with_the_keyboard(page: Page, site: Site):
    open_page(page, site, "/heads?heads_layer=3&heads_head=1", "Heads")
    figure = heatmap(page, "L3H1")
    canvas = figure.locator(".scroll canvas")
    expect(canvas).to_be_visible()
    press(canvas)
    for keys, cell in (
        ("ArrowDown", "“it” → “animal”"),  # the marked cell is where reading begins
        ("ArrowRight ArrowDown", "“was” → “didn”"),
        ("End", "“was” → “[SEP]”"),
        ("PageDown Home", "“[SEP]” → “[CLS]”"),
    ):
        for key in keys.split():
            page.keyboard.press(key)
        read_by_keyboard(figure, cell)
    page.keyboard.press("Escape")
    read_by_keyboard(figure, "“it” → “animal”")


def test_reading_by_keyboard_keeps_the_cell_in_view(page: Page, site: Site):
    page.set_viewport_size({"width": 390, "height": 500})
    text = urllib.parse.quote("word " * 100)
    open_page(page, site, f"/side-by-side?side_by_side_text={text}", "Side by side")
    figure = heatmap(page, "BERT novels")
    canvas = figure.locator(".scroll canvas")
    expect(canvas).to_be_visible()
    press(canvas)
    for key in ("ArrowDown", "End", "PageDown", "Home", "PageUp"):
        page.keyboard.press(key)
        expect(figure.locator(".cursor")).to_be_in_viewport()
        expect(figure.locator(".readout")).to_be_in_viewport()


def test_the_address_is_the_view(page: Page, site: Site, other: Page):
    link = f"/side-by-side?side_by_side_b_model={DECODER}"
    link += "&side_by_side_b_layer=3&side_by_side_b_head=1"
    open_page(page, site, link, "Side by side")
    type_text(page, "Sentence", SENTENCE)
    set_slider(page, "Layer", 1, 4)
    title = "SmolLM2 135M, L7H1"
    expect(heatmap(page, title)).to_be_visible()
    expect(page).to_have_url(re.compile(r"side_by_side_b_layer=7"))
    other.goto(page.url)
    expect(heatmap(other, title)).to_be_visible()
    expect(other.get_by_label("Sentence", exact=True)).to_have_value(SENTENCE)


def test_generate_with_and_without_a_cache(page: Page, site: Site):
    open_page(page, site, "/generate?generate_tokens=8", "Generate")
    prompt = "The lighthouse keeper"
    type_text(page, "Prompt", prompt)
    settled(page)
    top = "element => element.getBoundingClientRect().top"
    before = page.locator("figure.race").evaluate(top)
    click(page.get_by_role("button", name="Generate"))
    expect(page.get_by_text("Done: 8 tokens.")).to_be_visible()
    settled(page)
    assert page.locator("figure.race").evaluate(top) == before  # it stands where it stood empty
    outputs = page.locator("figure.race .text")
    expect(page.locator("figure.race .readout")).to_contain_text("times.")  # the replay is over
    texts = [outputs.nth(i).inner_text() for i in range(2)]
    assert texts[0] == texts[1]
    assert texts[0].startswith(prompt)
    assert len(texts[0]) > len(prompt) + 8
    speed_up = metric_value(page, "Speed-up in total").inner_text()
    assert float(re.search(r"([\d.]+) ×", speed_up).group(1)) > 0  # type: ignore[union-attr]
    difference = metric_value(page, "Largest logit difference").inner_text()
    assert 0 < float(difference) < 1e-3
    expect(
        page.locator("[data-testid=stVegaLiteChart] canvas, .vega-embed svg").first
    ).to_be_visible()


def test_a_run_is_stopped(page: Page, site: Site, alone_in_line: None):
    open_page(page, site, "/generate", "Generate")
    prompt = "The lighthouse keeper"
    type_text(page, "Prompt", prompt)
    with settings(page):
        press(slider(page, "New tokens"), "End")
    expect(page).to_have_url(re.compile("generate_tokens=200"))
    click(page.get_by_role("button", name="Generate"))
    # the lane without a cache has two steps then: without a decode step there is no ratio
    expect(page.get_by_text(re.compile(r"Running: ([3-9]|\d\d+) of 200 tokens"))).to_be_visible()
    page.locator(".st-key-generate_stop button").click()
    expect(page.get_by_text(re.compile(r"Stopped after \d+ of 200 tokens"))).to_be_visible()
    expect(page.locator(".st-key-generate_stop button")).to_be_disabled()
    settled(page)
    outputs = page.locator("figure.race .text")
    expect(page.locator("figure.race .readout")).to_contain_text("times.")  # the replay is over
    stopped = [outputs.nth(i).inner_text() for i in range(2)]
    assert all(text.startswith(prompt) and len(text) > len(prompt) for text in stopped)


def test_nothing_is_repainted_once_a_job_is_over(own_page: Page, site: Site):
    frames: list[str | bytes] = []
    own_page.on(
        "websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(frame))
    )
    open_page(own_page, site, "/generate?generate_tokens=3", "Generate")
    click(own_page.get_by_role("button", name="Generate"))
    expect(own_page.get_by_text("Done: 3 tokens.")).to_be_visible()
    expect(own_page.get_by_text("Every step, and the data")).to_be_visible()
    settled(own_page)
    seen = len(frames)
    # a timer of the view would have fired four times in this second
    own_page.evaluate("new Promise((resolve) => setTimeout(resolve, 1000))")
    assert seen > 0
    assert len(frames) == seen


def test_an_invalid_link_value_shows_a_toast(page: Page, site: Site):
    open_page(
        page, site, "/side-by-side?side_by_side_a_layer=77&side_by_side_b_head=2", "Side by side"
    )
    expect(heatmap(page, "GPT-2 novels, L3H2")).to_be_visible()
    expect(page.get_by_text("invalid value for “Layer”")).to_be_visible()
    expect(page.get_by_text("invalid value for “Head”")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("side_by_side_a_layer"))


def test_a_new_model_s_last_layer_is_in_the_address(page: Page, site: Site, other: Page):
    link = "/side-by-side?side_by_side_b_layer=29&side_by_side_b_head=1"
    link += f"&side_by_side_b_model={DECODER}"
    open_page(page, site, link, "Side by side")
    expect(heatmap(page, "SmolLM2 135M, L29H1")).to_be_visible()
    models = page.get_by_test_id("stSelectbox").filter(has_text="Model")
    click(models.nth(1).locator("input"))
    page.get_by_role("option", name="BERT novels").click()
    title = "BERT novels, L5H1"
    expect(heatmap(page, title)).to_be_visible()
    expect(page).to_have_url(
        re.compile(r"side_by_side_b_layer=5.*side_by_side_b_model=BERT\+novels")
    )
    other.goto(page.url)
    expect(heatmap(other, title)).to_be_visible()


@pytest.mark.usefixtures("alone_in_line")
def test_two_visitors_wait_in_line(page: Page, site: Site, other: Page):
    open_page(page, site, "/generate?generate_tokens=200", "Generate")
    click(page.get_by_role("button", name="Generate"))
    expect(page.get_by_text(re.compile(r"Running: [1-9]"))).to_be_visible()
    open_page(other, site, "/generate?generate_tokens=2", "Generate")
    click(other.get_by_role("button", name="Generate"))
    expect(other.get_by_text("Waiting: 1 visitor ahead of you.")).to_be_visible()
    page.locator(".st-key-generate_stop button").click()
    expect(other.get_by_text("Done: 2 tokens.")).to_be_visible()


@pytest.mark.parametrize(
    ("path", "heading", "shown", "warmup"),
    [
        (
            "/side-by-side?side_by_side_a_layer=2&side_by_side_a_head=1",
            "Side by side",
            "L2H1",
            "on",
        ),
        ("/shapes?shapes_step=8", "Shapes", "8. attention weights", "off"),
        ("/calculator?calculator_batch=2", "Calculator", "8.59 GB of cache", "off"),
    ],
)
def test_a_link_is_right_on_the_first_visit_after_a_start(
    fresh_site: Start, newcomer: Page, path: str, heading: str, shown: str, warmup: str
):
    """A cold link to a page must not end on the home page or in a "Page not found" dialog."""
    server, page = fresh_site(ATTENTION_LAB_WARMUP=warmup), newcomer
    open_page(page, server, path, heading)
    parts = page.get_by_test_id("stMain").get_by_text(shown)
    expect(parts.locator("visible=true").first).to_be_visible()
    settled(page)
    expect(page.get_by_text("Page not found")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    assert page.url == server.url + path  # nothing of the link was refused


def test_no_request_leaves_the_machine_and_a_download_does_not_wait_for_a_hub_that_is_gone(
    fresh_site: Start, newcomer: Page
):
    """Neither of a page that shows a hostile text nor of the server behind it."""
    requests: list[str] = []
    newcomer.on("request", lambda request: requests.append(request.url))
    hostile = urllib.parse.quote("![x](http://example.invalid/x.png) <img src=//example.invalid>")
    with socket.create_server(("127.0.0.1", 0)) as hub:  # takes calls, and never answers
        hub.setblocking(False)
        address = f"http://127.0.0.1:{hub.getsockname()[1]}"
        server, page = fresh_site(HF_ENDPOINT=address, HF_HUB_OFFLINE="0"), newcomer
        open_page(page, server, f"/?home_text={hostile}", "Attention Lab")
        expect(page.locator("figure.one-pass canvas")).to_be_visible()
        open_page(page, server, f"/side-by-side?side_by_side_text={hostile}", "Side by side")
        expect(page.locator("figure.heatmap canvas").first).to_be_visible()
        path = f"/generate?generate_prompt={hostile}&generate_tokens=1"
        open_page(page, server, path, "Generate")
        click(page.get_by_role("button", name="Generate"))
        expect(page.get_by_text("Done: 1 token.")).to_be_visible()
        open_page(page, server, "/models", "Models")
        settled(page)
        with pytest.raises(BlockingIOError):  # nobody has called
            hub.accept()
        page.get_by_role("button", name="Download", exact=True).click()
        expect(page.get_by_text("can't reach the Hugging Face Hub")).to_be_visible()
        hub.accept()  # somebody has now
    local = (server.url, server.url.replace("http", "ws"), "data:", "blob:")
    assert [url for url in requests if not url.startswith(local)] == []


def test_an_embedded_page_is_alone_and_its_links_work(page: Page, site: Site):
    open_page(page, site, "/ladder?embed=true&ladder_rung=v1", "Ladder")
    expect(page.get_by_role("heading", name="Rung 2 of 7: v1")).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    click(page.get_by_role("link", name="Next: Scaling"))
    expect(page.get_by_role("heading", name="Scaling", level=1)).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()


def test_every_page_is_in_the_navigation_and_a_door_is_a_link_as_a_whole(page: Page, site: Site):
    open_page(page, site, "/", "Attention Lab")
    links = page.get_by_test_id("stSidebarNavLink")
    expect(links).to_have_count(len(PATHS))
    addresses = [links.nth(i).get_attribute("href") or "" for i in range(len(PATHS))]
    assert sorted(urllib.parse.urlsplit(address).path or "/" for address in addresses) == sorted(
        PATHS
    )
    # not the title alone: the corner below the line that says what is there
    card = page.locator(".st-key-home_card_heads")
    settled(page)
    size = card.bounding_box()
    assert size is not None
    card.click(position={"x": size["width"] - 4, "y": size["height"] - 4})
    expect(page.get_by_role("heading", name="Heads", level=1)).to_be_visible()


def test_the_tab_names_the_page(page: Page, site: Site):
    open_page(page, site, "/", "Attention Lab")
    expect(page).to_have_title("Attention Lab")
    navigation = page.get_by_test_id("stSidebarNavItems")
    click(navigation.get_by_role("link", name="Scaling", exact=True))
    expect(page).to_have_title("Scaling · Attention Lab")
    click(navigation.get_by_role("link", name="Ladder", exact=True))
    expect(page).to_have_title("Ladder · Attention Lab")
    page.go_back()
    expect(page).to_have_title("Scaling · Attention Lab")
