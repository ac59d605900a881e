"""Answers that a browser kept: taken if they are pairs of texts, and nothing else is."""

import json

import pytest

from ui.widgets.questions import MOST_ANSWERS, MOST_CHARACTERS, read

KEPT = {"masking_quiz_1": ("How many?", "three"), "scaling_quiz_3": ("Why?", "<b>so</b>")}


def test_what_was_kept_is_read():
    assert read(json.dumps(KEPT)) == KEPT


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "null",
        "[" * 50_000,
        json.dumps({f"{number}": ["a", "b"] for number in range(MOST_ANSWERS + 1)}),
        json.dumps({"a": ["b", "c" * MOST_CHARACTERS]}),
        json.dumps({"a": "bc", "d": ["e"], "f": ["g", 1], "h": [["i"], "j"], "k": {"l": "m"}}),
    ],
)
def test_anything_else_is_no_answer(text: str):
    assert read(text) == {}
