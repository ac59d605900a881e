"""The frame around every page: what it says where the page itself has to wait."""

import pytest
from streamlit.testing.v1 import AppTest

from serving import page_runs
from tests.helpers.apptest import FRAME, open_page

PAGE = "pages/kv_cache/calculator/page.py"


def test_a_visitor_of_a_crowded_site_is_told_so_and_gets_the_page(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ATTENTION_LAB_WARMUP", "off")
    room = page_runs.Room(1)
    monkeypatch.setattr(page_runs, "_room", room)
    room.enter(0)
    monkeypatch.setattr(page_runs, "SILENT_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(page_runs, "LONGEST_WAIT_SECONDS", 0.02)
    site = open_page(AppTest.from_file(FRAME, default_timeout=60), PAGE)
    assert [toast.value for toast in site.toast] == [page_runs.CROWDED]
    assert site.title[0].value == "Calculator"
    room.leave()
    site.run()
    assert not site.toast  # there was room at once
