"""Test a visitor's text in the controls for teachers."""

import re

import pytest

from ui.frame import teaching


@pytest.mark.parametrize(
    "text", ['"><img src=x onerror=alert(1)>', "</div><script>alert(1)</script>", "\u202ertl & '\""]
)
def test_text_stays_inside_its_attribute(text: str):
    usual, hostile = teaching.row({"sentence": "a"}, ()), teaching.row({"sentence": text}, ())
    outside = re.compile(r'data-facts="[^"]*"')
    assert outside.sub("", usual) == outside.sub("", hostile)
    assert "<" not in outside.findall(hostile)[0]
