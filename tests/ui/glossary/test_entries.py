"""What the browser fetches: all terms, once a day."""

from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.helpers.browser import PATHS
from tests.helpers.glossary import GLOSSARY
from ui.frame.glossary import entries
from ui.frame.sections import TITLES


def test_the_whole_glossary_is_one_answer_that_is_kept():
    client = TestClient(Starlette(routes=[entries.route(TITLES)]))
    answer = client.get(entries.ADDRESS)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "public, max-age=86400"
    whole = answer.json()
    assert whole["passedOver"] == list(GLOSSARY.passed_over)
    assert [entry["name"] for entry in whole["terms"]] == [term.name for term in GLOSSARY.terms]
    softmax = next(entry for entry in whole["terms"] if entry["name"] == "Softmax")
    assert softmax["spellings"] == ["softmax"]
    assert (softmax["path"], softmax["title"]) == ("scaling", "Scaling")
    assert {f"/{entry['path']}" for entry in whole["terms"]} <= set(PATHS)
