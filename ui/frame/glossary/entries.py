"""The glossary as JSON for the browser: all terms and their spellings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serving import urls
from ui.frame.glossary import terms

ADDRESS = "/glossary.json"
_HEADERS = {"Cache-Control": "public, max-age=86400"}  # seconds


def route(titles: Mapping[str, str]) -> Route:
    """The route that serves the glossary. titles: the titles of all pages, by folder."""

    @cache
    def body() -> bytes:
        glossary = terms.glossary(frozenset(titles))
        entries = [
            {
                "name": term.name,
                "spellings": term.spellings,
                "sentence": term.sentence,
                "path": urls.page_path(term.page),
                "title": titles[term.page],
            }
            for term in glossary.terms
        ]
        whole = {"terms": entries, "passedOver": glossary.excluded_phrases}
        return json.dumps(whole, ensure_ascii=False).encode()

    def answer(_: Request) -> Response:
        return Response(body(), headers=_HEADERS, media_type="application/json")

    return Route(ADDRESS, answer)
