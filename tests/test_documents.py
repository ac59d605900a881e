"""Check that links, files, make targets and environment variables in Markdown files exist."""

import re
from pathlib import Path

import pytest

from pretrained import settings

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("benchmarks/results/*.md"),
    *ROOT.glob("pretrained/checkpoints/*/*.md"),
]
NAMES = [str(file.relative_to(ROOT)) for file in DOCUMENTS]


def text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_relative_links_resolve(document: Path):
    links = re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", text(document))
    targets = [(a or b).partition("#")[0] for a, b in links]
    missing = [t for t in targets if ":" not in t and not (document.parent / t).exists()]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_make_targets_exist(document: Path):
    known = re.findall(r"^([a-z][\w -]*):", text(ROOT / "Makefile"), re.MULTILINE)
    targets = re.findall(r"(?:^|`)make ([a-z][a-z0-9-]*)", text(document), re.MULTILINE)
    missing = set(targets) - set(" ".join(known).split())
    assert missing == set()


def test_security_policy_names_existing_files():
    folders = "tests|web|serving|pretrained|ui"
    paths = re.findall(rf"`((?:{folders})/[\w./]+)`", text(ROOT / "SECURITY.md"))
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_variable_is_documented_with_its_default():
    table = text(ROOT / "docs" / "configuration.md")
    rows = {}
    for line in table.splitlines():
        if match := re.match(r"\| `(\w+)` \| (.+?) \|", line):
            rows[match[1]] = match[2]
    assert {setting.name for setting in settings.ALL} <= rows.keys()
    for setting in settings.ALL:
        default = {True: "`on`", settings.MAX_DOWNLOAD.default: "8"}.get(setting.default)
        if default is not None:
            assert rows[setting.name].startswith(default)
