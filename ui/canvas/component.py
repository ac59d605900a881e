"""Declare canvas components and send them their data.

A Streamlit component gets its JavaScript and CSS as text and can't import files. So the scripts and
styles in `shared/` are placed before those of each component. Shared scripts are plain functions
without `export`, and the names they define are global to the component, so a component must not
redefine them.
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
    "query": "a query token", "key": "a key token", "next token": "a possible next token",
    "expert": "an expert", "sum": "the sum of its row", "row": "a vector", "product": "a vector",
    **dict.fromkeys(("column", "width"), "one element of its vector"),
}  # fmt: skip


def axis_description(axes: Sequence[str]) -> str:
    """Explain the rows and columns of a tensor whose last two axes have these names."""
    row, column = [_MEANINGS.get(axis, f"a {axis}") for axis in ("vector", *axes)[-2:]]
    column = column.replace("its vector", "it") if row == "a vector" else column
    return f"Each row is {row}, and each column is {column}."


def picture_caption() -> dict[str, str]:
    """Facts about the page for saved pictures: `model`, a short `name` and `axis_description`."""
    result: dict[str, str] = st.session_state.setdefault("pictures_about", {})
    return result


def with_caption(data: bytes, facts: Mapping[str, str]) -> bytes:
    """Add the fields from `picture_caption` to the header of a canvas's data."""
    if not facts:
        return data
    start = 4 if data[4:5] == b"{" else 0  # 0: the data is only a header
    field = b'{"about": ' + json.dumps(dict(facts)).encode() + b", "
    field += b" " * ((1 - len(field)) % 4)
    length = int.from_bytes(data[:start], "little") + len(field) - 1
    return (length.to_bytes(4, "little") if start else b"") + field + data[start + 1 :]


class Canvas:
    """A canvas component whose HTML, CSS and JavaScript are in `ui/canvas/<name>/<name>.*`.

    `html`, `css` and `js` are sent to the browser. Streamlit sends them with every canvas, so `js`
    has no indentation and no full-line comments. `parts` are additional scripts in the folder; they
    come before the main script.
    """

    def __init__(self, name: str, *parts: str) -> None:
        def text(ending: str, file: str = name) -> str:
            return (_FOLDER / name / f"{file}.{ending}").read_text(encoding="utf-8")

        self.parts = parts
        self.html = text("html").replace("<!-- tools -->", _shared_assets("html"))
        self.css = _shared_assets("css") + text("css")
        scripts = [_shared_assets("js"), *(text("js", part) for part in parts), text("js")]
        self.js = _NOT_SENT.sub("", "".join(scripts))
        self._mount = st.components.v2.component(
            f"attention_{name}", html=self.html, css=self.css, js=self.js
        )

    def draw(self, data: bytes, *, key: str, **callbacks: Any) -> None:
        """Draw `data` here. callbacks: functions named `on_<value>_change`."""
        self._mount(
            data=with_caption(data, picture_caption()), key=key, height="content", **callbacks
        )


def script(folder: str, name: str) -> str:
    """The shared scripts followed by one from a folder, for a component without a picture."""
    own = (_FOLDER / folder / f"{name}.js").read_text(encoding="utf-8")
    return _NOT_SENT.sub("", _shared_assets("js") + own)


def pack(header: Mapping[str, Any], *arrays: np.ndarray | bytes) -> bytes:
    """Pack the header length (4 bytes, little endian), a JSON header, and the arrays.

    Integers become int32 and all other numbers float32; the header is padded with spaces so that
    they're aligned to four bytes. Bytes are unchanged.
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


def _shared_assets(ending: str) -> str:
    files = sorted((_FOLDER / "shared").glob(f"*.{ending}"))
    return "".join(file.read_text(encoding="utf-8") for file in files)
