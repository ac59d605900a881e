"""A page as one HTML file, which opens without a network and asks for nothing.

Whatever is not the site's own code is carried as base64, which holds no character that could end an
element, or as escaped text; the page's policy runs its one script, by its hash, and lets nothing be
fetched.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable, Sequence


def page(title: str, inside: str, data: Sequence[str], *, style: str, script: str = "") -> str:
    """The HTML text of a page.

    title: may hold anything; it is also the heading. inside: the elements below the heading, and
    data: those that `inert` makes; style, script: the site's own texts. Without a script the page
    runs none, and has no pictures to draw.
    """
    needs = "The pictures are drawn by a script in this file: allow it to run."
    noscript, run = "", ""
    if script:
        noscript = f"<noscript>{needs}</noscript>\n"
        run = f'<script type="module">{script}</script>\n'
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{html.escape(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{html.escape(title)}</h1>
{noscript}{inside}
</main>
{"".join(data)}
{run}</body>
</html>
"""


def paragraphs(texts: Sequence[str]) -> str:
    """Plain texts, which may hold anything, a paragraph each."""
    return "\n".join(f"<p>{html.escape(text)}</p>" for text in texts)


def inert(name: str, data: bytes) -> str:
    """An element with these bytes that the browser neither shows nor runs."""
    text = base64.b64encode(data).decode()
    return f'<script type="application/octet-stream" id="{name}">{text}</script>\n'


def exported(js: str) -> str:
    """A component's script with what it exports as a constant named `exported`.

    Raises: ValueError for a script that is not one `export default` without imports.
    """
    body, count = re.subn(r"^export default\b", "const exported =", js, flags=re.MULTILINE)
    if count != 1 or re.search(r"^\s*(export|import)\b", body, re.MULTILINE):
        raise ValueError("the script of an offline page needs one default export and no imports")
    return _inside_a_script(body)


def literal(text: str) -> str:
    """A text of the site's own as one of JavaScript."""
    return _inside_a_script(json.dumps(text))


def _inside_a_script(js: str) -> str:
    """JavaScript without what would end the script's element in HTML, or begin a comment there.

    In a text or a pattern of JavaScript the escape means the same, and nowhere else can they stand.
    """
    return re.sub(r"<(?=!--|/?script)", r"\\x3C", js, flags=re.IGNORECASE)


def themes(option: Callable[[str], object]) -> str:
    """The colours of the site's two themes under the names that Streamlit gives them.

    option: the value of an option of Streamlit, by its name.
    """
    names = {
        "text-color": ("textColor", "CanvasText"),
        "background-color": ("backgroundColor", "Canvas"),
        "secondary-background-color": ("secondaryBackgroundColor", "Canvas"),
        "primary-color": ("primaryColor", "LinkText"),
        "border-color": ("borderColor", "GrayText"),
    }

    def colours(theme: str) -> str:
        return " ".join(
            f"--st-{name}: {option(f'theme.{theme}.{key}') or system};"
            for name, (key, system) in names.items()
        )

    return (
        f":root {{ {colours('light')} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {colours('dark')} }} }}\n"
    )


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"'sha256-{digest}'" if script else "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
