"""The style sheet and the scripts that the HTML document brings along.

Sent by the page's script, the style sheet would come after the title, which would be painted in
one place and then jump to another. `style.css` holds what no option of the theme decides, with the
sizes of `ui/canvas/shared/scale.css` and the site's mark, `logo.svg`. Each script says at its head
what it is for; those in `glossary/` mark and explain terms, those in `in_class/` serve teachers.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

import streamlit as st

_FOLDER = Path(__file__).parent
_IN_CLASS = ("projector", "pictures", "one_picture", "embedding", "print")
_SCRIPTS = (
    *("color_scheme", "history"),
    *(f"in_class/{name}" for name in _IN_CLASS),
    *("top_down", "keep_place", "too_long", "copy", "answered"),
    *("glossary/terms", "glossary/glossary"),
)
SCRIPT = "".join((_FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
_SIZES = (_FOLDER.parent / "canvas" / "shared" / "scale.css").read_text(encoding="utf-8")
_LOGO = base64.b64encode((_FOLDER / "logo.svg").read_bytes()).decode()
STYLE = f":root {{ --logo: url(data:image/svg+xml;base64,{_LOGO}) }}\n" + _SIZES
for _name in ("style", "glossary/glossary", "in_class/in_class"):
    STYLE += (_FOLDER / f"{_name}.css").read_text(encoding="utf-8")
HTML = f"<style>{STYLE}</style><script>{SCRIPT}</script>"


def inline_scripts() -> list[str]:
    """The inline scripts of the document: those of Streamlit, and then ours."""
    page = (Path(st.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    return [*re.findall(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", page, re.DOTALL), SCRIPT]
