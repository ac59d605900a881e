"""What the browser gets of the glossary: every entry with its picture, and how a term is found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serving import parameters
from ui.frame.glossary import numbers, pictures, terms

ADDRESS = "/glossary.json"
_KEPT = {"Cache-Control": "public, max-age=86400"}  # in seconds; a new site is a new day's


def entries(chosen: Iterable[terms.Term], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Terms as the scripts of the browser take them. titles: of all pages, by their folders."""
    return [
        {
            "name": term.name,
            "part": term.part,
            "spellings": term.spellings,
            "sentence": term.sentence,
            "path": parameters.address(term.page),
            "title": titles[term.page],
            "picture": pictures.picture(term.picture, numbers.stored()),
        }
        for term in chosen
    ]


def route(titles: Mapping[str, str]) -> Route:
    """The address under which the whole glossary lies."""

    @cache
    def body() -> bytes:
        glossary = terms.glossary(frozenset(titles))
        whole = {"terms": entries(glossary.terms, titles), "passedOver": glossary.passed_over}
        return json.dumps(whole, ensure_ascii=False).encode()

    def answer(_: Request) -> Response:
        return Response(body(), headers=_KEPT, media_type="application/json")

    return Route(ADDRESS, answer)
