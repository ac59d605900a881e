"""Test the notice in the page frame while a page has to wait."""

import threading

import pytest
from streamlit.testing.v1 import AppTest

from serving import compute, runs
from tests.helpers.apptest import FRAME, messages, open_page
from tests.helpers.bundled_models import ENCODER

PAGE = "pages/compare/heads/page.py"


def test_busy_notice(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ATTENTION_LAB_WARMUP", "off")
    monkeypatch.setattr(compute, "SILENT_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(compute, "LONGEST_WAIT_SECONDS", 0.02)
    runs.run_forward.clear()
    started, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with compute.slot(exclusive=True):
            started.set()
            go_on.wait(60)

    other = threading.Thread(target=hold)
    other.start()
    assert started.wait(60)
    site = open_page(AppTest.from_file(FRAME, default_timeout=60), PAGE, heads_model=ENCODER)
    go_on.set()
    other.join(60)
    assert [toast.value for toast in site.toast] == [compute.WAITING]
    [message] = messages(site)
    assert "Too many people are using this site right now" in message
    site.run()
    assert not site.toast
    assert not messages(site)
