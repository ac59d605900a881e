"""A page as a single HTML file that works offline and makes no requests.

Everything except the site's own code is escaped text, or base64, which has no characters that could
end an element. The page's security policy allows only its own script, by hash, and no requests.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable, Sequence


def page(title: str, body: str, data: Sequence[str], *, style: str, script: str = "") -> str:
    """The HTML text of a page.

    title: any text; it's also the heading. body: the elements below the heading. data: elements
    created by `inert_element`. style, script: the site's own code. Without a script the page can't
    draw pictures.
    """
    needs = "A script in this file draws the pictures. Allow scripts to see them."
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
{noscript}{body}
</main>
{"".join(data)}
{run}</body>
</html>
"""


def paragraphs(texts: Sequence[str]) -> str:
    """A paragraph for each text. The texts may contain anything."""
    return "\n".join(f"<p>{html.escape(text)}</p>" for text in texts)


def inert_element(name: str, data: bytes) -> str:
    """An element that contains these bytes; the browser neither shows nor runs it."""
    text = base64.b64encode(data).decode()
    return f'<script type="application/octet-stream" id="{name}">{text}</script>\n'


def wrap_exports(js: str) -> str:
    """A component's script whose default export is a constant named `wrap_exports` instead.

    Raises: ValueError unless the script has exactly one `export default` and no imports.
    """
    body, count = re.subn(r"^export default\b", "const exported =", js, flags=re.MULTILINE)
    if count != 1 or re.search(r"^\s*(export|import)\b", body, re.MULTILINE):
        raise ValueError("the script of an offline page needs one default export and no imports")
    return _escape_script(body)


def js_string(text: str) -> str:
    """A text of the site as a JavaScript string literal."""
    return _escape_script(json.dumps(text))


def _escape_script(js: str) -> str:
    """Escape everything that would end a script element in HTML or start a comment in it.

    Such sequences can only occur in strings and patterns, where the escape means the same.
    """
    return re.sub(r"<(?=!--|/?script)", r"\\x3C", js, flags=re.IGNORECASE)


def themes(option: Callable[[str], object]) -> str:
    """CSS variables for the colors of both themes, with Streamlit's names.

    option: returns the value of a Streamlit option.
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
