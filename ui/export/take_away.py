"""A page to take away: its files, made when they are asked for, its code and a link to it."""

from __future__ import annotations

import io
import textwrap
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from serving.limits import OverLimit
from ui.canvas.component import about
from ui.charts import theme
from ui.charts.show import specification
from ui.export import chart_files, qr
from ui.frame import sections
from ui.widgets import code_block, messages
from ui.widgets.folded import folded
from ui.widgets.linked import address

TITLE = "Take it away"

# The charts of a page by the names of their files, each as a function of its data:
# {"totals": partial(totals_chart, table, title)}. They return Altair charts or live dictionaries.
Charts = Mapping[str, partial[Any]]


@dataclass(frozen=True)
class File:
    """A file that can be saved.

    make: its bytes. It runs in another thread when the button is clicked, and there it knows
    neither the visitor nor the widgets: everything that it needs is bound to it. name: has an
    ending that no other file of the page has.
    """

    label: str
    make: Callable[[], bytes]
    name: str
    mime: str


def arrays(label: str, make: Callable[[], Mapping[str, Any]], name: str) -> File:
    """A file that `numpy.load` reads by the names of its arrays."""
    return File(label, partial(_npz, make), name, "application/zip")


def _npz(make: Callable[[], Mapping[str, Any]]) -> bytes:
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **make())
    return file.getvalue()


def pictures(charts: Callable[[], Charts], name: str) -> File:
    """Every chart of a page as SVG and PNG, dark on white, whatever theme the visitor sees.

    charts: gives them when the files are asked for, each with its arguments bound to it.
    """
    make = partial(_drawn, charts, dict(about()))
    return File("All charts (SVG and PNG)", make, name, "application/zip")


def _drawn(charts: Callable[[], Charts], facts: Mapping[str, str]) -> bytes:
    ink, paper = theme.on_white()
    described = {
        name: specification(chart.func, *chart.args, **chart.keywords, ink=ink, paper=paper)
        for name, chart in charts().items()
    }
    ranges = {name: st.get_option(f"theme.{option}") for name, option in _RANGES.items()}
    looks = {"background": paper, "font": "sans-serif", "range": ranges}
    said = [f"{of.capitalize()}: {facts[of]}" for of in ("model", "sentence") if of in facts]
    below = [line for text in said for line in textwrap.wrap(text, 90)]
    files = {}
    for name, chart in described.items():
        title = {"text": name.replace("_", " "), "subtitle": below, "anchor": "start"}
        looked = {"title": title, **chart, "config": {**chart.get("config", {}), **looks}}
        files["-".join(filter(None, (facts.get("name"), name)))] = looked
    return chart_files.archive(files)


# What Streamlit gives to charts that choose no colours of their own.
_RANGES = {
    "category": "chartCategoricalColors",
    "heatmap": "light.chartSequentialColors",
    "ramp": "light.chartSequentialColors",
}


def panel(files: Sequence[File], code: str, *, prefix: str, note: str = "") -> None:
    """Everything that can be taken away, folded: buttons, what is in the files, code, a link.

    `note` is Markdown and must hold no text of a visitor.
    """
    folded(TITLE, f"{prefix}_take_away", _parts, files, code, prefix, note)


def _parts(files: Sequence[File], code: str, prefix: str, note: str) -> None:
    buttons(files, key=f"{prefix}_save")
    if note:
        st.markdown(f":small[{note}]")
    snippet(code)
    link(prefix)


def buttons(files: Sequence[File], *, key: str) -> None:
    """Show a button for each file. A click makes the file and does not run the page again."""
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


def snippet(code: str) -> None:
    """Python that prints the numbers of the page."""
    st.markdown("The same numbers in Python, in this repository:")
    code_block.python(code)


def link(prefix: str) -> None:
    """The address that restores the page as it is now."""
    st.markdown("A link to this view:")
    code_block.plain(url(prefix))
    if st.button("QR code", icon=":material/qr_code_2:", key=f"{prefix}_qr"):
        _scan(url(prefix))


@st.dialog("Open this view on a phone")
def _scan(address: str) -> None:
    try:
        st.image(qr.png(address), width="stretch", output_format="PNG")
    except OverLimit as error:
        messages.problem(error)


def url(prefix: str) -> str:
    """The page's address with the value of every control whose key begins with `prefix`.

    From the controls themselves: the address that the browser shows follows a preset or a click on
    a picture only after the run that it causes.
    """
    page = sections.page_url(st.context.url or "")
    return f"{page}?{urllib.parse.urlencode(address(prefix), errors='replace')}".removesuffix("?")
