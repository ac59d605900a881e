"""Test Watch heads form in a browser: play, pause, resume, and the heads that form."""

import csv
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from pages.learn.watch_heads_form import sections
from tests.helpers.browser import (
    click,
    expect_next_page,
    open_page,
    press,
    text_without_marks,
)
from tests.helpers.visitors import PAINT_SECONDS, wait_until_settled

FORMING_MS = 3 * PAINT_SECONDS * 1000  # enough for both heads to form while other tests run


def test_play_pause_resume_until_heads_have_formed(page: Page, site: Site):
    open_page(page, site, "/watch-heads-form?watch_heads_form_heads=1", "Watch heads form")
    figure = page.locator("figure.forming")
    main = page.get_by_test_id("stMain")
    expect(figure).to_contain_text("Stored run, after step 600")
    press(figure.locator("canvas"), "ArrowRight")
    expect(figure.locator(".readout")).to_contain_text("Previous-token score")
    assert re.search(r"L0H\d: query 1 .*%", text_without_marks(figure.locator(".readout")))

    click(main.get_by_role("button", name="Play", exact=True))
    pause = main.get_by_role("button", name="Pause")
    play_on = main.get_by_role("button", name="Resume")
    expect(figure).to_contain_text("Your run, after step")
    expect(pause).to_be_enabled()
    pause.click()
    expect(play_on).to_be_enabled()
    wait_until_settled(page)
    title = figure.locator(".title").inner_text()
    press(page.get_by_role("radio", name=sections.NUMBERS), "Space")  # the page reruns
    wait_until_settled(page)
    assert figure.locator(".title").inner_text() == title  # nothing continued in the background
    click(play_on)

    expect(page.get_by_text("The loss dropped at step")).to_be_visible(timeout=FORMING_MS)
    expect(figure).to_contain_text(re.compile("after step (2[5-9]|[3-6]\\d)0"), timeout=FORMING_MS)
    if pause.is_enabled():
        pause.click()
    press(page.get_by_role("radio", name="All numbers, and the code"), "Space")
    with page.expect_download() as download:
        click(page.get_by_role("button", name="Download CSV with all heads"))
    lines = csv.DictReader(Path(download.value.path()).read_text(encoding="utf-8").splitlines())
    last = list(lines)[-1]
    assert float(last["previous token, L0H0"]) > 0.5
    assert float(last["induction, L1H0"]) > 0.5  # at distances unseen in training
    expect_next_page(page, "Cheaper models")
