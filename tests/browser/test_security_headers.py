"""Test the security headers of every response, and that pages work under them."""

import urllib.request

import pytest
from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import click
from ui.frame.page_assets import inline_scripts
from web.security_headers import security_headers

HEADERS = security_headers(inline_scripts())


@pytest.mark.parametrize("path", ["/", "/side-by-side", "/_stcore/health", "/healthz", "/metrics"])
def test_every_response_has_the_headers(site: Site, path: str):
    with urllib.request.urlopen(site.url + path, timeout=10) as response:
        assert {name: response.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.usefixtures("exclusive_generation")
def test_pages_work_under_the_policy(own_page: Page, site: Site):
    page = own_page
    refused: list[str] = []
    page.on(
        "console",
        lambda message: (
            refused.append(message.text) if "Content Security Policy" in message.text else None
        ),
    )
    page.goto(site.url)
    expect(page.locator("figure.one-pass canvas")).to_be_visible()
    page.goto(site.url + "/generate?generate_tokens=2")
    click(page.get_by_role("button", name="Generate"))
    expect(page.get_by_text("Done: 2 tokens.")).to_be_visible()
    expect(
        page.locator("[data-testid=stVegaLiteChart] canvas, .vega-embed svg").first
    ).to_be_visible()
    assert refused == []
    # an image from another site and a script in the text are blocked
    for markup in ("<img src='http://192.0.2.1/x.png'>", "<img src=x onerror='document.title=1'>"):
        with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
            page.evaluate("markup => document.body.insertAdjacentHTML('beforeend', markup)", markup)
    assert page.title() != "1"
