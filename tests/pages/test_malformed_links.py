"""Every page opens from a hundred links that are truncated, joined or invented."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.helpers.apptest import FRAME, VIEWS
from tests.helpers.links import malformed, open_link, parameters

pytestmark = pytest.mark.usefixtures("bundled_weights")

N_LINKS = 100
# These pages run a model dozens of times, so use a small one.
BUSY = {"ablate", "generated_tokens", "inside_the_cache", "what_is_recomputed"}
NAMES = {view: parameters(view) for view in VIEWS}


def links(view: str) -> list[str]:
    """The part of the hundred links that belongs to this page."""
    others = [name for other in VIEWS if other != view for name in NAMES[other]]
    return [
        malformed(number, NAMES[view], others)
        for number in range(VIEWS.index(view), N_LINKS, len(VIEWS))
    ]


@pytest.mark.parametrize("view", VIEWS)
def test_page_opens_with_any_link(
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
