"""A hundred links that were cut off, glued together or made up: every page opens all the same."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.helpers.apptest import FRAME, VIEWS
from tests.helpers.links import LONG, VALUES, malformed, open_link, parameters

pytestmark = pytest.mark.usefixtures("bundled_weights")

N_LINKS = 100
# Pages that run a model dozens of times for one view: a small one does.
BUSY = {"ablate", "generated_tokens", "inside_the_cache", "what_is_recomputed"}
NAMES = {view: parameters(view) for view in VIEWS}


def links(view: str) -> list[str]:
    """The share of a page, whose numbers no other page has."""
    others = [name for other in VIEWS if other != view for name in NAMES[other]]
    return [
        malformed(number, NAMES[view], others)
        for number in range(VIEWS.index(view), N_LINKS, len(VIEWS))
    ]


def test_there_are_a_hundred_links_of_every_kind():
    queries = [query for view in VIEWS for query in links(view)]
    assert len(queries) == len(set(queries)) == N_LINKS
    assert queries == [query for view in VIEWS for query in links(view)]  # the same in every run
    everything = "&".join(queries)
    assert [value for value in VALUES if f"={value}" not in everything] == []
    assert any(query.count(LONG) > 1 for query in queries)


@pytest.mark.parametrize("view", VIEWS)
def test_a_page_opens_by_any_link(
    view: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
):
    if Path(view).parent.name in BUSY:
        request.getfixturevalue("only_a_small_model")
    titles = set()
    for query in links(view):
        site = AppTest.from_file(FRAME, default_timeout=60)
        open_link(site, view, query, monkeypatch)
        assert not site.exception, query
        titles.add(site.title[0].value)
    assert len(titles) == 1
