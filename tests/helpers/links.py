"""Generate malformed links, the same in every run, and open pages with them."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest, local_script_runner

from tests.helpers.apptest import ROOT, open_page

LONG = "a" * 20_000
# Unquoted values: some are escape sequences, some only look like one.
VALUES = (
    "", "%", "%%%", "%zz", "%u0041", "%00", "%0d%0a", "%ff%fe", "%ed%a0%80", "%F0%9F", "%C2%9B",
    "%E2%80%AEevil", "%E2%81%A6%E2%81%A9", "%CC%81" * 300, "NaN", "-nan", "inf", "-Infinity",
    "1e999", "-1e999", "1e-400", "-1", "-0", "0x10", "1_0", "%EF%BC%91", "%D9%A3", "%C2%B2",
    "9" * 400, "-" + "9" * 400, "0." + "0" * 500 + "1", "1.5.2", "1,5", "+", "%2B1", "True", "null",
    "undefined", "[]", "%7B%7D", "..%2F..%2Fetc%2Fpasswd", "%3Cscript%3Ealert(1)%3C/script%3E",
    "$%7B7*7%7D", "L999H999", "L-1H-1", "0-0-0", ";", "a=b", LONG, "%F0%9F%98%80" * 3_000,
)  # fmt: skip
FRAGMENTS = ("", "&", "=", "==", "%", "?", "#", "%00=%00", "=1", "embed=%", "page=..", "%26", "_")
# Typed text: a page runs a model for each new text.
TYPED = re.compile("_(text|prompt|text_b|other|word|words|question|hub_id)$")


def parameters(view: str) -> list[str]:
    """Return the names that a page's own code gives to its widgets, and so to URL parameters."""
    page = Path(view).parent
    code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / page).glob("*.py"))
    return sorted(set(re.findall(rf'"({page.name}_[a-z0-9_]+)"', code)))


def malformed(number: int, own: Sequence[str], others: Sequence[str]) -> str:
    """Return a query with own and other parameters: repeated, truncated or too long."""
    choice = random.Random(number)
    parts = choice.sample(FRAGMENTS, 3)
    for name in choice.sample(own, min(len(own), choice.randint(2, 9))) + choice.sample(others, 2):
        values = ("", LONG) if TYPED.search(name) else VALUES
        for _ in range(choice.choice((1, 1, 1, 2, 7))):
            parts.append(name + choice.choice(("=", "=", "=", "==", "")) + choice.choice(values))
    choice.shuffle(parts)
    return "&".join(parts)


def open_link(site: AppTest, view: str, query: str, patch: pytest.MonkeyPatch) -> AppTest:
    """Open a page with this exact query, because AppTest would re-encode it."""
    as_it_is = SimpleNamespace(urlencode=lambda *_, **__: query)
    patch.setattr(local_script_runner, "parse", as_it_is)
    return open_page(site, view, any="any")
