"""Test the main user flows: generate, stop, wait in the queue, first visit, navigation."""

import re
import socket
import urllib.parse
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from benchmarks.browser import Server, Site
from tests.helpers.browser import (
    PATHS,
    click,
    metric_value,
    open_page,
    press,
    settings,
    slider,
    type_text,
)
from tests.helpers.visitors import wait_until_settled

PROMPT = "The lighthouse keeper"


def generated_texts(page: Page) -> list[str]:
    """Return both texts once their replay has finished."""
    expect(page.locator("figure.race .readout")).to_contain_text("times as long")
    return page.locator("figure.race .text").all_inner_texts()


def test_generate_with_and_without_a_cache(own_page: Page, site: Site):
    page, frames = own_page, list[str | bytes]()
    page.on(
        "websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(frame))
    )
    open_page(page, site, "/generate?generate_tokens=8", "Generate")
    type_text(page, "Prompt", PROMPT)
    wait_until_settled(page)
    top = "element => element.getBoundingClientRect().top"
    before = page.locator("figure.race").evaluate(top)
    click(page.get_by_role("button", name="Generate"))
    expect(page.get_by_text("Done: 8 tokens.")).to_be_visible()
    expect(page.get_by_text("Every step, with a download")).to_be_visible()
    wait_until_settled(page)
    visible = len(frames)
    # its position is the same as before the run
    assert page.locator("figure.race").evaluate(top) == before
    texts = generated_texts(page)
    assert texts[0] == texts[1]
    assert texts[0].startswith(PROMPT)
    assert len(texts[0]) > len(PROMPT) + 8
    assert 0 < float(metric_value(page, "Largest logit difference").inner_text()) < 1e-3
    chart = page.locator("[data-testid=stVegaLiteChart] canvas, .vega-embed svg").first
    expect(chart).to_be_visible()
    # nothing is sent after a job ends: a timer would have fired four times by now
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 1000))")
    assert 0 < visible == len(frames)


@pytest.mark.usefixtures("exclusive_generation")
def test_visitor_waits_for_a_run_that_is_then_stopped(page: Page, site: Site, other: Page):
    open_page(page, site, "/generate", "Generate")
    type_text(page, "Prompt", PROMPT)
    with settings(page):
        press(slider(page, "New tokens"), "End")
    expect(page).to_have_url(re.compile("generate_tokens=200"))
    open_page(other, site, "/generate?generate_tokens=2", "Generate")
    wait_until_settled(other)
    click(page.get_by_role("button", name="Generate"))
    # by then, the lane without a cache has two steps; a ratio needs at least one decode step
    expect(page.get_by_text(re.compile(r"Running: ([3-9]|\d\d+) of 200 tokens"))).to_be_visible()
    click(other.get_by_role("button", name="Generate"))
    expect(other.get_by_text("Waiting: 1 visitor ahead of you.")).to_be_visible()
    page.locator(".st-key-generate_stop button").click()
    expect(page.get_by_text(re.compile(r"Stopped after \d+ of 200 tokens"))).to_be_visible()
    expect(page.locator(".st-key-generate_stop button")).to_be_disabled()
    assert all(
        text.startswith(PROMPT) and len(text) > len(PROMPT) for text in generated_texts(page)
    )
    expect(other.get_by_text("Done: 2 tokens.")).to_be_visible()


def test_first_visit_by_link_sends_no_request_to_other_machines(
    fresh_site: Callable[..., Server], newcomer: Page
):
    """Neither a page with hostile text nor its server contacts another machine.

    A first visit by link must not end on the home page or in a "Page not found" dialog. A download
    doesn't wait for a hub that is unreachable.
    """
    requests: list[str] = []
    newcomer.on("request", lambda request: requests.append(request.url))
    hostile = urllib.parse.quote("![x](http://example.invalid/x.png) <img src=//example.invalid>")
    with socket.create_server(("127.0.0.1", 0)) as hub:  # accepts connections but never responds
        hub.setblocking(False)
        address = f"http://127.0.0.1:{hub.getsockname()[1]}"
        server, page = fresh_site(HF_ENDPOINT=address, HF_HUB_OFFLINE="0"), newcomer
        path = "/side-by-side?side_by_side_a_layer=2&side_by_side_a_head=1"
        open_page(page, server, path, "Side by side")
        expect(page.locator("figure.heatmap canvas").first).to_be_visible()
        wait_until_settled(page)
        expect(page.get_by_text("Page not found")).to_have_count(0)
        assert page.url == server.url + path  # all of the link's parameters were valid
        open_page(page, server, f"/side-by-side?side_by_side_text={hostile}", "Side by side")
        expect(page.locator("figure.heatmap canvas").first).to_be_visible()
        open_page(page, server, f"/?home_text={hostile}", "Attention Lab")
        expect(page.locator("figure.one-pass canvas")).to_be_visible()
        path = f"/generate?generate_prompt={hostile}&generate_tokens=1"
        open_page(page, server, path, "Generate")
        click(page.get_by_role("button", name="Generate"))
        expect(page.get_by_text("Done: 1 token.")).to_be_visible()
        open_page(page, server, "/models", "Models")
        wait_until_settled(page)
        with pytest.raises(BlockingIOError):  # no connection so far
            hub.accept()
        page.get_by_role("button", name="Download", exact=True).click()
        expect(page.get_by_text("can't reach the Hugging Face Hub")).to_be_visible()
        hub.accept()  # now there is one
    local = (server.url, server.url.replace("http", "ws"), "data:", "blob:")
    assert [url for url in requests if not url.startswith(local)] == []


def test_navigation_home_card_and_tab_title(page: Page, site: Site):
    open_page(page, site, "/", "Attention Lab")
    expect(page).to_have_title("Attention Lab")
    links = page.get_by_test_id("stSidebarNavLink")
    expect(links).to_have_count(len(PATHS))
    addresses = [link.get_attribute("href") or "" for link in links.all()]
    assert sorted(urllib.parse.urlsplit(address).path or "/" for address in addresses) == sorted(
        PATHS
    )
    # the whole card is a link, down to the corner below its description
    card = page.locator(".st-key-home_card_heads")
    wait_until_settled(page)
    size = card.bounding_box()
    assert size is not None
    card.click(position={"x": size["width"] - 4, "y": size["height"] - 4})
    expect(page).to_have_title("Heads · Attention Lab")
    expect(page.get_by_role("heading", name="Heads", level=1)).to_be_visible()
    navigation = page.get_by_test_id("stSidebarNavItems")
    click(navigation.get_by_role("link", name="Scaling", exact=True))
    expect(page).to_have_title("Scaling · Attention Lab")
    wait_until_settled(page)
    page.go_back()
    expect(page).to_have_title("Heads · Attention Lab")


def test_embedded_page_has_no_navigation_and_its_links_work(page: Page, site: Site):
    open_page(page, site, "/ladder?embed=true&ladder_rung=v1", "Ladder")
    expect(page.get_by_role("heading", name="Rung 2 of 7: v1")).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    click(page.get_by_role("link", name="Next: Scaling"))
    expect(page.get_by_role("heading", name="Scaling", level=1)).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
