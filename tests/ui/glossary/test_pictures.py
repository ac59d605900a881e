"""Every picture is a well-formed SVG that stays inside its frame; bars and cells are to scale."""

import re
from xml.etree import ElementTree

import pytest

from tests.helpers.glossary import GLOSSARY
from ui.frame.glossary import numbers, pictures
from ui.frame.glossary.terms import Term
from ui.frame.page_assets import STYLE

SVG = "{http://www.w3.org/2000/svg}"


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


@pytest.mark.parametrize("term", GLOSSARY.terms, ids=lambda term: term.name)
def test_a_picture_says_what_it_is_and_stays_in_its_frame(term: Term):
    root = parsed(pictures.picture(term.picture, numbers.stored()))
    assert root.get("role") == "img"
    assert re.fullmatch(r"[A-Z].{15,}\.", root.get("aria-label", ""))
    assert len(list(root)) >= 2
    for rect in root.iter(f"{SVG}rect"):
        x, y, width, height = (
            float(rect.get(name, "nan")) for name in ("x", "y", "width", "height")
        )
        assert 0 <= x <= x + width <= pictures.WIDTH
        assert 0 <= y <= y + height <= pictures.HEIGHT
    for text in root.iter(f"{SVG}text"):
        assert 12 <= float(text.get("y", "nan")) < pictures.HEIGHT
        assert text.text


@pytest.mark.parametrize("term", GLOSSARY.terms, ids=lambda term: term.name)
def test_its_colours_are_those_of_the_page(term: Term):
    svg = pictures.picture(term.picture, numbers.stored())
    named = set(re.findall(r"var\((--[\w-]+)\)", svg))
    assert all(f"{name}: #" in STYLE for name in named)
    assert not re.search(r"#[0-9a-f]{3,6}|rgb|script|href", svg)


def test_a_bar_is_as_high_as_its_number_and_below_the_line_where_it_is_below_zero():
    rects = list(parsed(f'<svg xmlns="{SVG[1:-1]}">{pictures.bars([3, 1, -1], "keys")}</svg>'))[1:]
    tops = [float(rect.get("y", "")) for rect in rects]
    heights = [float(rect.get("height", "")) for rect in rects]
    assert heights == pytest.approx([58.5, 19.5, 19.5])
    assert tops[2] == pytest.approx(tops[0] + heights[0]) == pytest.approx(tops[1] + heights[1])


def test_a_darker_cell_is_a_larger_number_and_what_is_masked_is_crossed_out():
    drawn = pictures.cells([[1.0, 0.5], [-1.0, None]], "keys")
    assert [float(share) for share in re.findall(r'fill-opacity="([\d.]+)"', drawn)] == [1, 0.54]
    assert drawn.count('stroke-opacity="1.00"') == 1
    assert drawn.count("<path") == 1


def test_texts_are_escaped():
    says = '<script>alert(1)</script> & "more" than that.'
    svg = pictures.picture({"draw": "pieces", "words": ["<b>", "&"], "says": says}, {})
    root = parsed(svg)
    assert root.get("aria-label") == says
    assert [text.text for text in root.iter(f"{SVG}text")] == ["<b>", "&"]


@pytest.mark.parametrize(
    "how", [{"draw": "photo", "says": "A cat."}, {"draw": "flow", "boxes": []}]
)
def test_a_picture_that_cannot_be_drawn_is_refused(how: dict):
    with pytest.raises(ValueError, match="a picture needs one of"):
        pictures.picture(how, {})
