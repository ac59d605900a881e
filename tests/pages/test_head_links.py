"""Links at an open head lead to the same head on other pages."""

from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from serving import heads, runs
from tests.helpers.apptest import FRAME, open_whole_page
from tests.helpers.bundled_models import DECODER

pytestmark = pytest.mark.usefixtures("bundled_weights")

TEXT = "Two cats & a dog, 100 % awake?"
LAYER, HEAD = 13, 8
OPENED = {
    "pages/start/one_pass/page.py": {
        "one_pass_text": TEXT,
        "one_pass_model": DECODER,
        "one_pass_layer": str(LAYER),
        "one_pass_head": str(HEAD),
    },
    "pages/compare/heads/page.py": {
        "heads_text": TEXT,
        "heads_model": DECODER,
        "heads_layer": str(LAYER),
        "heads_head": str(HEAD),
    },
    "pages/compare/side_by_side/page.py": {
        "side_by_side_text": TEXT,
        "side_by_side_a_model": DECODER,
        "side_by_side_a_layer": str(LAYER),
        "side_by_side_a_head": str(HEAD),
    },
    "pages/compare/ablate/page.py": {
        "ablate_text": TEXT,
        "ablate_model": DECODER,
        "ablate_heads": f"L{LAYER}H{HEAD}",
    },
}
LABELS = {
    "One pass": "pages/start/one_pass/page.py",
    "All heads": "pages/compare/heads/page.py",
    "Compare": "pages/compare/side_by_side/page.py",
    "Ablate": "pages/compare/ablate/page.py",
    "Word pairs": "pages/compare/word_pairs/page.py",
    "Step through": "pages/learn/shapes/page.py",
}


def with_pair() -> dict[str, dict[str, str]]:
    """Link targets from a page that shows a pair: the head's strongest one."""
    run = runs.run(DECODER, TEXT)
    query, key = heads.strongest_tokens(run, LAYER, HEAD)
    pair = {"query": str(query), "key": str(key)}
    words = [run.tokens.pieces[token].strip() for token in (query, key)]
    added = {
        "pages/compare/heads/page.py": {f"heads_{name}": at for name, at in pair.items()},
        "pages/compare/side_by_side/page.py": {
            f"side_by_side_{name}": at for name, at in pair.items()
        },
    }
    added["pages/compare/word_pairs/page.py"] = {
        "word_pairs_query": words[0],
        "word_pairs_a": words[1],
    }
    return {view: OPENED.get(view, {}) | added.get(view, {}) for view in LABELS.values()}


def links(site: AppTest) -> dict[str, dict[str, str]]:
    """The parameters of each link by label. If two share a label, the first one wins."""
    results: dict[str, dict[str, str]] = {}
    for element in site.get("page_link"):
        proto: Any = element.proto
        query = {key: values[0] for key, values in parse_qs(proto.query_string).items()}
        results.setdefault(proto.label, query)
    return {label: query for label, query in results.items() if label in LABELS}


@pytest.mark.parametrize("view", OPENED)
def test_links_open_the_head_and_the_text(site: AppTest, view: str):
    open_whole_page(site, view, **OPENED[view])
    assert not site.exception
    assert not site.toast  # No parameter of the link was rejected.
    other_links = links(site)
    assert set(other_links) == {label for label, other in LABELS.items() if other != view}
    expected = OPENED if "ablate" in view else with_pair()  # Ablate doesn't show a token pair.
    for label, query in other_links.items():
        params = expected.get(LABELS[label], {})
        assert query == params if LABELS[label] in OPENED else query.items() >= params.items()
        if "heads" in view:  # The other pages have the same links.
            target = AppTest.from_file(FRAME, default_timeout=60)
            open_whole_page(target, LABELS[label], **query)
            assert not target.exception
            assert not target.toast
            assert TEXT in [box.value for box in target.text_input]
