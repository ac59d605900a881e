"""The site's glossary, and two ways to find its terms: the browser's script and a reference."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from streamlit.testing.v1 import AppTest

from ui.frame import sections
from ui.frame.glossary.terms import glossary

GLOSSARY = glossary(frozenset(sections.TITLES))
NODE = Path(sys.executable).with_name("node")  # installed by a package in requirements-dev.txt
_SCRIPT = Path(sections.__file__).with_name("glossary") / "terms.js"
_RUN = """
const [code, terms, passedOver, texts] = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const find = new Function(`${code}\\nreturn termFinder`)()(terms, passedOver);
console.log(JSON.stringify(texts.map((text) => find(text).map(({ name }) => name))));
"""


def prose(site: AppTest) -> list[str]:
    """Return the page's Markdown text without code, formulas, links and markup."""
    texts = [element.value for element in (*site.markdown, *site.text)]
    for pattern, instead in (
        (r"`[^`]*`|\$[^$]*\$|\[[^\]]*\]\([^)]*\)", "\n"),
        (r":\w+\[|\*|\\(?=\W)|(?<=[.!?)\w*])\]", ""),
    ):
        texts = [re.sub(pattern, instead, text) for text in texts]
    return texts


def marked_terms(texts: Sequence[str]) -> list[set[str]]:
    """Return the terms that the browser's script marks in each text."""
    terms = [{"name": term.name, "spellings": term.spellings} for term in GLOSSARY.terms]
    inputs = [_SCRIPT.read_text(encoding="utf-8"), terms, GLOSSARY.excluded_phrases, list(texts)]
    result = subprocess.run(
        [NODE, "-e", _RUN], input=json.dumps(inputs), capture_output=True, text=True, check=True
    )
    return [set(names) for names in json.loads(result.stdout)]


def used_terms(text: str) -> set[str]:
    """Return the terms used in a text, found word by word; the longest match wins."""
    meant = {
        tuple(_words(spelling)): term.name for term in GLOSSARY.terms for spelling in term.spellings
    }
    meant |= {tuple(_words(phrase)): "" for phrase in GLOSSARY.excluded_phrases}
    longest = max(map(len, meant))
    result, words, at = set(), _words(re.sub("\u2068[^\u2069]*\u2069", "|", text)), 0
    while at < len(words):
        for length in range(longest, 0, -1):
            run = tuple(words[at : at + length])
            if run in meant:
                result.add(meant[run])
                at += length
                break
        else:
            at += 1
    return result - {""}


def _words(text: str) -> list[str]:
    """Split a text into lower-case words (keeping hyphens) and the characters between them."""
    return re.findall(r"√?\w+(?:-[^\W\d]\w*)*|[^\w\s]", text.lower())
