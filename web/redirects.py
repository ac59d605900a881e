"""Redirects from old page addresses to the pages that replaced them."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route

MOVED = {"journey": "one-pass"}


def routes() -> list[Route]:
    """A permanent redirect per old address; parameters get the prefix of the new page."""
    return [Route(f"/{old}", _redirect) for old in MOVED]


def _redirect(request: Request) -> RedirectResponse:
    old = request.url.path.rpartition("/")[2]
    new = MOVED[old]
    before, after = (f"{name.replace('-', '_')}_" for name in (old, new))
    query = urlencode(
        [
            (after + name.removeprefix(before) if name.startswith(before) else name, value)
            for name, value in request.query_params.multi_items()
        ]
    )
    # relative, so that it also works behind a proxy that serves the site under a path
    return RedirectResponse(f"{new}?{query}" if query else new, status_code=308)
