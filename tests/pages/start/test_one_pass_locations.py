"""Locations in the picture of one pass, as encoded in the address."""

import pytest

from pages.start.one_pass import locations


def test_location_round_trip():
    text = "matrix scores 12 3 5 2 4 -1 5 2"
    location = locations.parse_location(text)
    assert location is not None
    assert (location["level"], location["matrix"]) == ("matrix", "scores")
    assert (location["row"], location["told"], location["detail"], location["why"]) == (5, -1, 5, 2)
    assert locations.format_location(location) == text


def test_story_continues_at_another_head():
    assert (
        locations.resolve_location("matrix scores 12 3 5 2 4 6", 7, 1)
        == "matrix scores 7 1 5 2 4 6 3 -1"
    )
    for text in ("matrix scores 12 3 5 2 4 -1", "cellar", ""):
        assert locations.resolve_location(text, 7, 1) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cellar q 0 0 0 0 0 0",
        "head bones 0 0 0 0 0 0",
        "matrix scores 12 3 5 2 4 -1 1",
        "matrix scores 12 3 5 2 4 99999",
        "matrix scores 12 3 5 2 4 -1 7 0",  # Beyond the slider's range.
        "matrix scores 12 3 5 2 4 -1 3 99",
    ],
)
def test_invalid_location_is_none(text: str):
    assert locations.parse_location(text) is None
