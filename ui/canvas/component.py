"""One way to declare a drawing of the browser, and to send it what it draws.

A component of Streamlit is given its JavaScript and its styles as texts and may import no file of
its own. So the scripts and styles in `shared/`, which hold what all drawings have in common, stand
before those of the component. The shared scripts are plain functions without `export`; the names
they define are global to the component, which must not define them again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

_FOLDER = Path(__file__).parent
_NOT_SENT = re.compile(r"^\s*(?:(?://.*|/\*\*(?:(?!\*/)[\s\S])*\*/)\n\s*)*", re.MULTILINE)
_MEANINGS = {
    "query": "the token that looks", "key": "the token looked at", "token": "a token",
    "next token": "a token that may come next", "sum": "the sum of the row", "row": "one vector",
    "product": "one vector", **dict.fromkeys(("column", "width"), "one number of its vector"),
}  # fmt: skip


def sentence(axes: Sequence[str]) -> str:
    """What a row and a column are, where the last two axes of a tensor have these names."""
    row, column = [_MEANINGS.get(axis, f"one {axis}") for axis in ("vector", *axes)[-2:]]
    column = column.replace("its vector", "it") if row == "one vector" else column
    return f"A row is {row}, a column {column}."


def about() -> dict[str, str]:
    """What the page shows: `model`, its short `name`, `sentence`. Saved pictures say so."""
    found: dict[str, str] = st.session_state.setdefault("pictures_about", {})
    return found


def described(data: bytes, facts: Mapping[str, str]) -> bytes:
    """The data of a drawing with these facts of `about` in its header."""
    if not facts:
        return data
    start = 4 if data[4:5] == b"{" else 0  # 0: nothing but a header
    field = b'{"about": ' + json.dumps(dict(facts)).encode() + b", "
    field += b" " * ((1 - len(field)) % 4)
    length = int.from_bytes(data[:start], "little") + len(field) - 1
    return (length.to_bytes(4, "little") if start else b"") + field + data[start + 1 :]


class Canvas:
    """A drawing whose html, css and js lie in `ui/canvas/<name>/<name>.*`, declared to Streamlit.

    `html`, `css` and `js` are the texts that the browser gets. Streamlit sends them with every
    drawing, so `js` goes without its indents and without comments that fill lines. `parts` are
    further scripts of the folder, which stand before its own.
    """

    def __init__(self, name: str, *parts: str) -> None:
        def text(ending: str, file: str = name) -> str:
            return (_FOLDER / name / f"{file}.{ending}").read_text(encoding="utf-8")

        self.parts = parts
        self.html = text("html").replace("<!-- tools -->", _shared("html"))
        self.css = _shared("css") + text("css")
        scripts = [_shared("js"), *(text("js", part) for part in parts), text("js")]
        self.js = _NOT_SENT.sub("", "".join(scripts))
        self._mount = st.components.v2.component(
            f"attention_{name}", html=self.html, css=self.css, js=self.js
        )

    def draw(self, data: bytes, *, key: str, **callbacks: Any) -> None:
        """Draw `data` at this place of the page, with functions named `on_<value>_change`."""
        self._mount(data=described(data, about()), key=key, height="content", **callbacks)


def script(folder: str, name: str) -> str:
    """A script of a folder behind the shared ones, for a component that draws nothing."""
    own = (_FOLDER / folder / f"{name}.js").read_text(encoding="utf-8")
    return _NOT_SENT.sub("", _shared("js") + own)


def pack(header: Mapping[str, Any], *arrays: np.ndarray | bytes) -> bytes:
    """Header length (4 bytes, little endian), JSON header, then the arrays one after another.

    Integers travel as int32, all other numbers as float32; the header is then padded with blanks
    so that they start at a multiple of four bytes. Bytes travel as they are.
    """
    text = json.dumps(header).encode()
    if not all(isinstance(array, bytes) for array in arrays):
        text += b" " * (-len(text) % 4)
    return b"".join([len(text).to_bytes(4, "little"), text, *map(_bytes, arrays)])


def _bytes(array: np.ndarray | bytes) -> bytes:
    if isinstance(array, bytes):
        return array
    kind = "<i4" if np.issubdtype(array.dtype, np.integer) else "<f4"
    return np.ascontiguousarray(array, dtype=kind).tobytes()


def _shared(ending: str) -> str:
    files = sorted((_FOLDER / "shared").glob(f"*.{ending}"))
    return "".join(file.read_text(encoding="utf-8") for file in files)
