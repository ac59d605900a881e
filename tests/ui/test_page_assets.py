"""The style sheet and the scripts of the document."""

from ui.charts import style
from ui.frame.page_assets import SCRIPT, STYLE


def test_the_parts_of_the_document_end_where_they_should():
    """Neither the style sheet nor the script may hold what ends its element."""
    assert "</style" not in STYLE.lower()
    assert "</script" not in SCRIPT.lower()


def test_the_pictures_of_the_glossary_have_the_colours_of_all_others():
    for name in ("queries", "keys", "values", "positions", "stream", "attention", "feed-forward"):
        colour = getattr(style, name.upper().replace("-", "_"))
        assert f"--{name}: {colour.lower()};" in STYLE
