"""Test the style sheet and scripts of the HTML document."""

from ui.frame.page_assets import SCRIPT, STYLE


def test_style_and_script_cannot_close_their_elements():
    """Neither the style sheet nor the script contains a closing tag for its element."""
    assert "</style" not in STYLE.lower()
    assert "</script" not in SCRIPT.lower()
