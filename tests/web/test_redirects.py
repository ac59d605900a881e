"""Test that former page addresses redirect to the pages that replaced them."""

from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from ui.frame.sections import TITLES
from web import redirects

visitor = TestClient(Starlette(routes=redirects.routes()), follow_redirects=False)


def location(link: str) -> str:
    answer = visitor.get(link)
    assert answer.status_code == 308
    return answer.headers["location"]


def test_every_moved_page_redirects_to_an_existing_one():
    pages = {folder.rpartition("/")[2].replace("_", "-") for folder in TITLES}
    assert set(redirects.MOVED.values()) <= pages
    assert not pages & set(redirects.MOVED)


def test_parameters_are_renamed_for_the_new_page_and_others_kept():
    link = "/journey?journey_text=Two+cats&journey_layer=3&view=clean&journey_part=a&journey_part=b"
    new = location(link)
    # relative, because a proxy may serve the site below a path
    assert urlsplit(new).path == "one-pass"
    assert parse_qsl(urlsplit(new).query) == [
        ("one_pass_text", "Two cats"),
        ("one_pass_layer", "3"),
        ("view", "clean"),
        ("one_pass_part", "a"),
        ("one_pass_part", "b"),
    ]
    assert location("/journey") == "one-pass"


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "//example.invalid", "a\r\nSet-Cookie: b=c", "&x=1#y"]
)
def test_text_stays_a_value(text: str):
    new = location(f"/journey?journey_text={quote(text)}")
    assert parse_qsl(urlsplit(new).query) == [("one_pass_text", text)]
    assert urlsplit(new).path == "one-pass"
    assert not urlsplit(new).netloc
