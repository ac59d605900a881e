"""Every picture of the glossary is a well-formed SVG inside its frame, and texts are escaped."""

from xml.etree import ElementTree

import pytest

from tests.helpers.glossary import GLOSSARY
from ui.frame.glossary import numbers, pictures

SVG = "{http://www.w3.org/2000/svg}"


def test_every_picture_stays_in_its_frame():
    for term in GLOSSARY.terms:
        root = ElementTree.fromstring(pictures.picture(term.picture, numbers.stored()))
        assert root.get("aria-label"), term.name
        for rect in root.iter(f"{SVG}rect"):
            x, y, width, height = (float(rect.get(k, "nan")) for k in ("x", "y", "width", "height"))
            assert 0 <= x <= x + width <= pictures.WIDTH, term.name
            assert 0 <= y <= y + height <= pictures.HEIGHT, term.name


def test_a_bar_is_as_high_as_its_number_and_below_the_line_where_it_is_below_zero():
    drawn = f'<svg xmlns="{SVG[1:-1]}">{pictures.bars([3, 1, -1], "keys")}</svg>'
    rects = list(ElementTree.fromstring(drawn))[1:]
    tops = [float(rect.get("y", "")) for rect in rects]
    heights = [float(rect.get("height", "")) for rect in rects]
    assert heights == pytest.approx([58.5, 19.5, 19.5])
    assert tops[2] == pytest.approx(tops[0] + heights[0]) == pytest.approx(tops[1] + heights[1])


def test_texts_are_escaped():
    says = '<script>alert(1)</script> & "more" than that.'
    svg = pictures.picture({"draw": "pieces", "words": ["<b>", "&"], "says": says}, {})
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == says
    assert [text.text for text in root.iter(f"{SVG}text")] == ["<b>", "&"]
