"""A page's downloads: files created on a click, the code for its numbers, and a link to it."""

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
from ui.widgets.lazy_expander import lazy_expander
from ui.widgets.linked import link_parameters

TITLE = "Download or share"


@dataclass(frozen=True)
class File:
    """A file to download.

    make: returns the file's bytes. It's called on a click, in another thread and without the
    visitor's session, so everything it needs must be bound to it. name: file name; its extension
    must be unique on the page.
    """

    label: str
    make: Callable[[], bytes]
    name: str
    mime: str


def csv(label: str, make: Callable[[], pd.DataFrame], stem: str) -> File:
    """A table as `stem.csv`."""
    return File(f"{label} (CSV)", lambda: tables.csv(make()), f"{stem}.csv", "text/csv")


def npz(label: str, make: Callable[[], Mapping[str, Any]], stem: str) -> File:
    """Named arrays as `stem.npz`, for `numpy.load`."""
    return File(f"{label} (NPZ)", partial(_npz, make), f"{stem}.npz", "application/zip")


def _npz(make: Callable[[], Mapping[str, Any]]) -> bytes:
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **make())
    return file.getvalue()


def panel(prefix: str, *files: File, snippet: str, note: str = "") -> None:
    """A collapsed section with the page's files, its code and a link to it.

    prefix: the prefix of the page's keys. note: Markdown about the files; it must not contain a
    visitor's text.
    """
    lazy_expander(TITLE, f"{prefix}_downloads", _content, prefix, files, snippet, note)


def _content(prefix: str, files: tuple[File, ...], snippet: str, note: str) -> None:
    buttons(*files, key=f"{prefix}_save")
    if note:
        st.markdown(f":small[{note}]")
    code(snippet)
    link(prefix)


def buttons(*files: File, key: str) -> None:
    """A button for each file. A click creates the file without rerunning the page."""
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
    """Show Python code that prints the page's numbers."""
    st.markdown("Python code for the same numbers (run it in this repository):")
    code_block.python(snippet)


def link(prefix: str) -> None:
    """Show the address that restores the page's current state, and its QR code."""
    st.markdown("Link to this view:")
    code_block.plain(url(prefix))
    if st.button("Show QR code", icon=":material/qr_code_2:", key=f"{prefix}_qr"):
        _show_qr_code(url(prefix))


@st.dialog("Open this view on a phone")
def _show_qr_code(address: str) -> None:
    try:
        st.image(qr.png(address), width="stretch", output_format="PNG")
    except OverLimit as error:
        messages.show_problem(error)


def url(prefix: str) -> str:
    """The page's URL with the value of every widget whose key starts with `prefix`.

    The values come from the widgets themselves, because after a preset or a click on a picture the
    browser's address is only updated at the end of the run.
    """
    page = sections.page_url(st.context.url or "")
    return (
        f"{page}?{urllib.parse.urlencode(link_parameters(prefix), errors='replace')}".removesuffix(
            "?"
        )
    )
