"""Test that HTML is inserted into documents that a browser opens, and nothing else."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from web.html_insert import HtmlInsert

DOCUMENT = "<!doctype html><html><head></head><body><div id=root></div></body></html>"
HTML = "<style>a { }</style>"
BROWSER = {"accept": "text/html,*/*;q=0.8", "accept-encoding": "gzip"}


def document(request: Request) -> Response:
    """Return a document with the caching headers of its file."""
    return HTMLResponse(DOCUMENT, headers={"etag": "a", "last-modified": "b", "x-kept": "c"})


def in_parts(request: Request) -> Response:
    """Return the same in three chunks, the first of which ends inside `<body>`."""
    return StreamingResponse(
        iter([DOCUMENT[:35], DOCUMENT[35:40], DOCUMENT[40:]]), media_type="text/html"
    )


def text(request: Request) -> Response:
    """Return plain text that looks like a document."""
    return PlainTextResponse(DOCUMENT)


@pytest.fixture
def client() -> TestClient:
    """Return a client for an app that compresses everything it can, like Streamlit."""
    routes = [Route(f"/{view.__name__}", view) for view in (document, in_parts, text)]
    app = Starlette(routes=routes, middleware=[Middleware(GZipMiddleware, minimum_size=1)])
    return TestClient(HtmlInsert(app, HTML), headers=BROWSER)


@pytest.mark.parametrize("path", ["/document", "/in_parts"])
def test_html_is_inserted_into_a_document(client: TestClient, path: str):
    answer = client.get(path)
    assert answer.text == DOCUMENT.replace("<body>", f"<body>{HTML}")
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert not {"etag", "last-modified", "content-encoding"} & set(answer.headers)


def test_nothing_else_is_changed(client: TestClient):
    assert client.get("/text").text == DOCUMENT
    # responses to other requests, such as a script's fetch, stay compressed
    fetched = client.get("/document", headers={"accept": "*/*"})
    assert fetched.text == DOCUMENT
    assert fetched.headers["content-encoding"] == "gzip"
    assert client.head("/document").headers["etag"] == "a"
