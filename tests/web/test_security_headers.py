"""Test the content security policy; tests/browser/test_security_headers.py loads pages under it."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from web.security_headers import SecurityHeaders, security_headers


@pytest.mark.parametrize("sites", [(), ("https://moodle.example.org", "http://x.example:8080")])
def test_only_listed_sites_may_frame_the_site(sites: tuple[str, ...]):
    headers = security_headers(["a script"], sites)
    app = Starlette(middleware=[Middleware(SecurityHeaders, headers)])
    response = TestClient(app).get("/nowhere")
    policy = response.headers["content-security-policy"].split("; ")
    assert " ".join(["frame-ancestors 'self'", *sites]) in policy
    assert "default-src 'self'" in policy
    assert {name: response.headers[name] for name in headers} == headers
