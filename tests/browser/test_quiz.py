"""Test that quiz answers stay in the browser and tick off their page."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import click, open_page, press, unfold
from tests.helpers.visitors import wait_until_settled

NAVIGATION = "[data-testid=stSidebarNavLink]"
# The pages whose links have a check mark.
TICKED = """links => [...document.querySelectorAll(links)]
  .filter((link) => getComputedStyle(link, "::before").content.includes("✓"))
  .map((link) => link.pathname.slice(1))"""


def test_answer_is_restored_on_the_next_visit(page: Page, site: Site):
    open_page(page, site, "/masking", "Masking and dropout")
    wait_until_settled(page)
    expect(page.locator(".st-key-masking_quiz")).to_have_count(0)  # it's sent when it's opened
    unfold(page, "Predict, then look")
    question = page.locator(".st-key-masking_quiz").get_by_role("radiogroup").first
    choice = question.get_by_role("radio").first
    choice.focus()
    page.keyboard.press("Space")
    wait_until_settled(page)
    for is_open in (False, True):  # after closing and reopening, the selection is still there
        press(page.locator("summary").filter(has_text="Predict, then look"), "Enter")
        wait_until_settled(page)
        expect(choice).to_be_visible(visible=is_open)
    expect(choice).to_be_checked()
    assert page.evaluate(TICKED, NAVIGATION) == []  # opened, but nothing is answered yet
    click(page.get_by_role("button", name="Check answer").first)
    outcome = page.locator(".st-key-masking_quiz").get_by_test_id("stAlert")
    expect(outcome).to_have_text(re.compile("Correct|Not quite"))
    message = outcome.text_content() or ""
    wait_until_settled(page)
    assert page.evaluate(TICKED, NAVIGATION) == ["masking"]

    open_page(page, site, "/", "Attention Lab")  # a new server session
    wait_until_settled(page)
    assert page.evaluate(TICKED, NAVIGATION) == ["masking"]
    open_page(page, site, "/masking", "Masking and dropout")
    unfold(page, "Predict, then look")
    expect(page.get_by_text(re.compile("Correct answers: [01] of 3"))).to_be_visible()
    expect(outcome).to_have_text(message)
    expect(choice).to_be_checked()
    wait_until_settled(page)  # a page that's still running would write the answers again

    page.evaluate("localStorage.setItem('attention-lab-answers', '[[[')")
    open_page(page, site, "/", "Attention Lab")
    wait_until_settled(page)
    assert page.evaluate(TICKED, NAVIGATION) == []
