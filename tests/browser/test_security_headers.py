"""The hosted form of the site: its headers, and that the pages work under them."""

import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from benchmarks.browser import Site
from ui.frame.security_headers import HEADERS

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    server = Site(tmp_path_factory.mktemp("hosted") / "log.txt", script="serve.py")
    server.wait_until_it_listens()
    yield server
    server.stop()


@pytest.mark.parametrize("path", ["/", "/side-by-side", "/_stcore/health"])
def test_every_answer_carries_the_headers(hosted: Site, path: str):
    with urllib.request.urlopen(hosted.url + path, timeout=10) as response:
        assert {name: response.headers[name] for name in HEADERS} == HEADERS


def test_the_pages_work_under_the_policy(hosted: Site, browser: Browser):
    page = browser.new_context().new_page()
    page.set_default_timeout(60_000)
    refused: list[str] = []
    page.on(
        "console",
        lambda message: (
            refused.append(message.text) if "Content Security Policy" in message.text else None
        ),
    )
    page.goto(hosted.url)
    expect(page.locator("figure.heatmap canvas").first).to_be_visible()
    page.goto(hosted.url + "/generate?generate_tokens=2")
    page.get_by_role("button", name="Generate").click()
    expect(page.get_by_text("Done: 2 tokens.")).to_be_visible()
    expect(
        page.locator("[data-testid=stVegaLiteChart] canvas, .vega-embed svg").first
    ).to_be_visible()
    assert refused == []
    # an image of another site and a script in the text are refused
    for markup in ("<img src='http://192.0.2.1/x.png'>", "<img src=x onerror='document.title=1'>"):
        with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
            page.evaluate("markup => document.body.insertAdjacentHTML('beforeend', markup)", markup)
    assert page.title() != "1"
    page.context.close()
