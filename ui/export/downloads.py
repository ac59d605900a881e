"""The downloads of a page: files made on a click, the code behind its numbers, a link to it."""

from __future__ import annotations

import io
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from serving.limits import OverLimit
from ui.export import qr, tables
from ui.frame import sections
from ui.widgets import code_block, messages
from ui.widgets.folded import folded
from ui.widgets.linked import address

TITLE = "Download or share"


@dataclass(frozen=True)
class File:
    """A file to download.

    make: returns its bytes. It runs in another thread when the button is clicked, without the
    visitor's session, so everything it needs must be bound to it. name: its ending must be unique
    among the files of a page.
    """

    label: str
    make: Callable[[], bytes]
    name: str
    mime: str


def csv(label: str, make: Callable[[], pd.DataFrame], stem: str) -> File:
    """A table as `stem.csv`."""
    return File(f"{label} (CSV)", lambda: tables.csv(make()), f"{stem}.csv", "text/csv")


def npz(label: str, make: Callable[[], Mapping[str, Any]], stem: str) -> File:
    """Arrays as `stem.npz`, which `numpy.load` reads by their names."""
    return File(f"{label} (NPZ)", partial(_npz, make), f"{stem}.npz", "application/zip")


def _npz(make: Callable[[], Mapping[str, Any]]) -> bytes:
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **make())
    return file.getvalue()


def panel(prefix: str, *files: File, snippet: str, note: str = "") -> None:
    """A folded section with the page's files, its code and a link to it.

    prefix: of the page's keys. note: Markdown about the files, without a visitor's text.
    """
    folded(TITLE, f"{prefix}_downloads", _content, prefix, files, snippet, note)


def _content(prefix: str, files: tuple[File, ...], snippet: str, note: str) -> None:
    buttons(*files, key=f"{prefix}_save")
    if note:
        st.markdown(f":small[{note}]")
    code(snippet)
    link(prefix)


def buttons(*files: File, key: str) -> None:
    """A button for each file. A click makes the file and doesn't run the page again."""
    with st.container(horizontal=True):
        for file in files:
            st.download_button(
                file.label,
                file.make,
                file_name=file.name,
                mime=file.mime,
                on_click="ignore",
                icon=":material/download:",
                key=f"{key}_{file.name.rpartition('.')[2]}",
            )


def code(snippet: str) -> None:
    """Python that prints the numbers of the page."""
    st.markdown("The same numbers in Python, in this repository:")
    code_block.python(snippet)


def link(prefix: str) -> None:
    """The address that restores the page as it is now, and its QR code."""
    st.markdown("A link to this view:")
    code_block.plain(url(prefix))
    if st.button("QR code", icon=":material/qr_code_2:", key=f"{prefix}_qr"):
        _show_qr_code(url(prefix))


@st.dialog("Open this view on a phone")
def _show_qr_code(address: str) -> None:
    try:
        st.image(qr.png(address), width="stretch", output_format="PNG")
    except OverLimit as error:
        messages.problem(error)


def url(prefix: str) -> str:
    """The page's address with the value of every control whose key begins with `prefix`.

    From the controls themselves: the browser's address follows a preset or a click on a picture
    only after the run that it causes.
    """
    page = sections.page_url(st.context.url or "")
    return f"{page}?{urllib.parse.urlencode(address(prefix), errors='replace')}".removesuffix("?")
