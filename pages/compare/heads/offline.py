"""Pictures of the site as one HTML file that opens without a network and asks for nothing.

The same component files that Streamlit mounts are put into one page, each in a shadow root of its
own. Whatever is not the site's own code is carried as base64, which holds no character that could
end an element; the page's policy runs its one script, by its hash, and lets nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import streamlit as st

from ui.canvas.component import Canvas

MAX_BYTES = 96 * 1024**2

Data = bytes | Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """One component: the three texts that `st.components.v2.component` takes, and its data.

    data: bytes, or a mapping that JSON can hold, as the component is given it on the site.
    follows: the name of a state or trigger value ("open") that any part of the page may set; when
    it is set to `v`, this part is drawn again with `variants[v]`, and where there is none, the text
    `missing` is shown. Values are compared as text.
    """

    html: str
    css: str
    js: str
    data: Data
    follows: str = ""
    variants: Mapping[int | str, Data] = field(default_factory=dict)
    missing: str = "This file does not hold what was chosen."

    @classmethod
    def of(cls, canvas: Canvas, data: Data, **options: Any) -> Part:
        """A drawing of the site."""
        return cls(canvas.html, canvas.css, canvas.js, data, **options)


def page(title: str, parts: Sequence[Part], notes: Sequence[str] = ()) -> str:
    """The HTML text of a page with this title, these paragraphs of plain text, and the parts.

    Title, notes and data may hold anything. The parts' html, css and js are the site's own.
    Raises: ValueError for a script that is not one `export default` without imports, and for a
    page above `MAX_BYTES`.
    """
    scripts = list(dict.fromkeys(part.js for part in parts))
    factories = ",\n".join(f"() => {{\n{_factory(js)}\n}}" for js in scripts)
    script = f"const FACTORIES = [\n{factories}\n];\n{_asset('.js')}"
    blocks, described = [], []
    for i, part in enumerate(parts):
        variants = {"": part.data, **{str(value): data for value, data in part.variants.items()}}
        blocks += [
            _inert(f"data-{i}-{j}", _bytes(data)) for j, data in enumerate(variants.values())
        ]
        described.append(
            {
                "html": part.html,
                "css": part.css,
                "factory": scripts.index(part.js),
                "values": list(variants),
                "json": [not isinstance(data, bytes) for data in variants.values()],
                "follows": part.follows,
                "missing": part.missing,
            }
        )
    size = sum(map(len, blocks))
    if size > MAX_BYTES:
        raise ValueError(f"the page would hold {size:,} bytes, the limit is {MAX_BYTES:,}")
    blocks.append(_inert("parts", json.dumps(described).encode()))
    sections = "\n".join(f'<section id="part-{i}"></section>' for i in range(len(parts)))
    paragraphs = "\n".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{html.escape(title)}</title>
<style>{_theme()}{_asset(".css")}</style>
</head>
<body>
<main>
<h1>{html.escape(title)}</h1>
{paragraphs}
<noscript>The pictures are drawn by a script in this file: allow it to run.</noscript>
{sections}
</main>
{"".join(blocks)}
<script type="module">{script}</script>
</body>
</html>
"""


def _asset(ending: str) -> str:
    return Path(__file__).with_suffix(ending).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _factory(js: str) -> str:
    """A component's script as the body of a function that returns what the script exports."""
    if len(re.findall(r"^\s*export\b", js, re.MULTILINE)) != 1:
        raise ValueError("a component's script must have exactly one export, its default")
    if re.search(r"^\s*import\b", js, re.MULTILINE):
        raise ValueError("a component of an offline page cannot import a file")
    body, count = re.subn(r"^export default\b", "const exported =", js, flags=re.MULTILINE)
    if count != 1:
        raise ValueError("a component's script must have exactly one export, its default")
    # Inside a script element these would end it, or begin a comment. In a text or a pattern of
    # JavaScript the escape means the same, and nowhere else can they stand.
    body = re.sub(r"<(?=!--|/?script)", r"\\x3C", body, flags=re.IGNORECASE)
    return f"{body}\nreturn exported;"


def _bytes(data: Data) -> bytes:
    return data if isinstance(data, bytes) else json.dumps(dict(data)).encode()


def _inert(name: str, data: bytes) -> str:
    """An element that the browser neither shows nor runs."""
    text = base64.b64encode(data).decode()
    return f'<script type="application/octet-stream" id="{name}">{text}</script>\n'


def _theme() -> str:
    """The colours of the site's two themes under the names that Streamlit gives them."""
    names = {
        "text-color": ("textColor", "CanvasText"),
        "background-color": ("backgroundColor", "Canvas"),
        "secondary-background-color": ("secondaryBackgroundColor", "Canvas"),
        "primary-color": ("primaryColor", "LinkText"),
        "border-color": ("borderColor", "GrayText"),
    }

    def colours(theme: str) -> str:
        return " ".join(
            f"--st-{name}: {st.get_option(f'theme.{theme}.{option}') or system};"
            for name, (option, system) in names.items()
        )

    return (
        f":root {{ {colours('light')} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {colours('dark')} }} }}\n"
    )
