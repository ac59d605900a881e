"""Test that errors of a model end the page with a message."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from attention_core.checks import NotFiniteError
from pretrained import WeightsMissing
from pretrained.sources import FilesChanged, UnusableModel
from serving.limits import OverLimit

ERRORS = [
    FilesChanged(Path("mine")),
    UnusableModel("model.safetensors is truncated"),
    WeightsMissing("not on this machine"),
    OverLimit("too little memory"),
    NotFiniteError("infinite"),
]


def page_that_raises(error: Exception) -> None:
    import streamlit as st

    from ui.widgets import messages

    with messages.page_guard():
        raise error
    st.text("the frame goes on")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_model_error_is_a_message(error: Exception):
    site = AppTest.from_function(page_that_raises, args=(error,)).run()
    assert not site.exception
    assert len(site.warning) == 1
    assert site.text[0].value == "the frame goes on"


def test_page_error_is_raised():
    site = AppTest.from_function(page_that_raises, args=(ValueError("a bug"),)).run()
    assert site.exception
