"""The style sheet and scripts that are embedded in the HTML document.

If the page's script sent the style sheet, it would arrive after the title, and the title would
jump. `style.css` contains everything that theme options don't cover, with the sizes from
`ui/canvas/shared/scale.css` and the logo, `logo.svg`. Each script starts with a comment on its
purpose. Those in `glossary/` underline and explain terms, and those in `teaching/` are tools for
teachers.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

import streamlit as st

_FOLDER = Path(__file__).parent
_TEACHING = ("projector", "pictures", "picture_embed", "embedding", "print")
_SCRIPTS = (
    *("color_scheme", "history"),
    *(f"teaching/{name}" for name in _TEACHING),
    *("layout_shift", "scroll_position", "input_limits", "copy", "answered_pages"),
    *("glossary/terms", "glossary/glossary"),
)
SCRIPT = "".join((_FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
_SIZES = (_FOLDER.parent / "canvas" / "shared" / "scale.css").read_text(encoding="utf-8")
_LOGO = base64.b64encode((_FOLDER / "logo.svg").read_bytes()).decode()
STYLE = f":root {{ --logo: url(data:image/svg+xml;base64,{_LOGO}) }}\n" + _SIZES
for _name in ("style", "glossary/glossary", "teaching/teaching"):
    STYLE += (_FOLDER / f"{_name}.css").read_text(encoding="utf-8")
HTML = f"<style>{STYLE}</style><script>{SCRIPT}</script>"


def inline_scripts() -> list[str]:
    """The document's inline scripts: first Streamlit's, then ours."""
    page = (Path(st.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    return [*re.findall(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", page, re.DOTALL), SCRIPT]
