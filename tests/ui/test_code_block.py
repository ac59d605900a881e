"""Test that code, formulas and addresses are displayed literally, whatever they contain."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.helpers.apptest import code

HOSTILE = """</code><img src=x onerror="alert(1)">&amp;<script>"""


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("plain", f"a  b\n  {HOSTILE}"),
        ("python", f"# x.py, line 1\nname = '''{HOSTILE}'''  # {HOSTILE}\nif a < b > c:\n    pass"),
        ("python", f"\n    not Python at all: {HOSTILE}"),
        ("python", ""),
    ],
)
def test_text_is_displayed_literally(kind: str, text: str):
    def page(kind: str, text: str) -> None:
        from ui.widgets import code_block

        getattr(code_block, kind)(text)

    site = AppTest.from_function(page, args=(kind, text)).run()
    assert code(site) == [text]
    [element] = site.get("html")
    assert "<img" not in element.proto.body
    assert "<script" not in element.proto.body
