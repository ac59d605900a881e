"""The offline page as text: what stands in it, and what cannot break out of it."""

import base64
import hashlib
import json
import re

import pytest

from pages.compare.heads import offline
from pages.compare.heads.offline import OfflineComponent, page
from tests.helpers.html_elements import Elements

HOSTILE = "</script></title><img src=x onerror=alert(1)><!--<script>"
JS = 'const text = "</SCRIPT><!-- <script>";\nexport default function ({ data }) { return text; }\n'


def test_nothing_breaks_out_of_its_element():
    part = OfflineComponent(
        HOSTILE, HOSTILE, JS, HOSTILE.encode(), "open", {HOSTILE: {"a": HOSTILE}}, HOSTILE
    )
    text = page(HOSTILE, [part, part], notes=[HOSTILE])
    elements = Elements(text)
    tags = [tag for tag, _ in elements.found]
    assert "img" not in tags
    assert tags.count("script") == 2 * 2 + 1 + 1  # data and variant of two parts, parts, script
    assert elements.texts_of("title", "h1", "p") == [HOSTILE] * 3
    scripts = elements.scripts()
    assert base64.b64decode(scripts["data-0-0"]) == HOSTILE.encode()
    assert json.loads(base64.b64decode(scripts["data-1-1"])) == {"a": HOSTILE}
    # one policy, one script, named by its hash; the same script of two parts stands there once
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    digest = hashlib.sha256(scripts[None].encode()).digest()
    assert f"script-src 'sha256-{base64.b64encode(digest).decode()}';" in policy
    assert policy.startswith("default-src 'none'")
    assert scripts[None].count("const exported = function") == 1
    assert not re.search("https?://(?!www.w3.org/)", text)


@pytest.mark.parametrize(
    "js", ["function a() {}", "export default 1\nexport const a = 1", "import a from 'b'\n" + JS,
           "export { a as default }"],
)  # fmt: skip
def test_a_script_that_cannot_be_a_part_is_refused(js: str):
    with pytest.raises(ValueError, match="export|import"):
        page("t", [OfflineComponent("", "", js, b"")])


def test_a_page_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(offline, "MAX_BYTES", 100)
    with pytest.raises(ValueError, match="the limit is 100"):
        page("t", [OfflineComponent("", "", JS, bytes(100))])


def test_the_page_has_the_colours_of_both_themes():
    text = page("t", [])
    light, dark = text.split("prefers-color-scheme: dark")
    assert "--st-background-color: #ffffff;" in light
    assert "--st-background-color: #0b0e12;" in dark
