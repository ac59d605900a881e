"""Test parsing of answers stored in the browser: only pairs of texts are accepted."""

import json

import pytest

from ui.widgets.questions import MAX_ANSWERS, MAX_CHARACTERS, parse_answers

KEPT = {"masking_quiz_1": ("How many?", "three"), "scaling_quiz_3": ("Why?", "<b>so</b>")}


def test_parse_stored_answers():
    assert parse_answers(json.dumps(KEPT)) == KEPT


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "null",
        "[" * 50_000,
        json.dumps({f"{number}": ["a", "b"] for number in range(MAX_ANSWERS + 1)}),
        json.dumps({"a": ["b", "c" * MAX_CHARACTERS]}),
        json.dumps({"a": "bc", "d": ["e"], "f": ["g", 1], "h": [["i"], "j"], "k": {"l": "m"}}),
    ],
)
def test_rejects_invalid_answers(text: str):
    assert parse_answers(text) == {}
