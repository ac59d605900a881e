"""The style sheet and the scripts of the document."""

from ui.frame.page_assets import SCRIPT, STYLE


def test_the_parts_of_the_document_end_where_they_should():
    """Neither the style sheet nor the script may hold what ends its element."""
    assert "</style" not in STYLE.lower()
    assert "</script" not in SCRIPT.lower()
