"""Former addresses of pages redirect to the pages that replaced them."""

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


def test_every_moved_page_leads_to_one_that_is_there():
    pages = {folder.rpartition("/")[2].replace("_", "-") for folder in TITLES}
    assert set(redirects.MOVED.values()) <= pages
    assert not pages & set(redirects.MOVED)


def test_parameters_get_the_names_of_the_new_page_and_others_stay():
    link = "/journey?journey_text=Two+cats&journey_layer=3&view=clean&journey_part=a&journey_part=b"
    new = location(link)
    assert urlsplit(new).path == "one-pass"  # relative: a proxy may serve the site below a path
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
def test_a_text_stays_a_value(text: str):
    new = location(f"/journey?journey_text={quote(text)}")
    assert parse_qsl(urlsplit(new).query) == [("one_pass_text", text)]
    assert urlsplit(new).path == "one-pass"
    assert not urlsplit(new).netloc
