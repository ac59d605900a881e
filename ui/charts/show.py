"""Altair charts in the colours of the theme: built once for the same numbers, then only sent.

A chart is a function from data (a `pandas.DataFrame`, usually) and a few settings to an Altair
chart. It chooses marks and encodings; the colours of text and background, the frame and the
legend's look are added here for every chart. A mark in the colour of the text is `style.INK`.

It gives `encode` channels (`alt.Text("label:N")`, not `text="label:N"`) with their properties as
keywords (`alt.X("tokens:Q", title="tokens")`, not `.title("tokens")`). Altair needs 2 to 8 ms to
find out which channel a text, a value or a condition stands for, and up to 1 ms for each method.

Building a chart takes 1 to 15 ms. A page runs again at every click, so the finished descriptions
are kept by the function and the content of its arguments.
"""

from __future__ import annotations

import copy
import hashlib
import math
import pickle
from collections.abc import Callable, Hashable
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st
from altair.utils.schemapi import disable_debug_mode

from serving.cache import cached
from ui.charts import style, theme

Specification = dict[str, Any]  # a Vega-Lite description
Build = Callable[..., alt.TopLevelMixin | Specification]

# Checking a chart against its schema takes twice as long as building it. The charts are the same
# for all visitors, but for their numbers: the tests of the pages check every one of them.
CHECKED = False
disable_debug_mode()  # this is what Altair calls checking each part of a chart when it is made


def _rows(table: pd.DataFrame) -> Specification:
    """The rows of a table as JSON has them, in a fifth of the time of `altair.to_values`.

    Altair's bound on their number is not needed: `serving.limits` bounds what a page may ask for.
    """
    names = list(table)
    columns = [[_plain(value) for value in table[name].tolist()] for name in names]
    return {"values": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]}


def _plain(value: Any) -> Any:
    """JSON has no numbers that are not finite; pandas marks a missing text with such a number."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


alt.data_transformers.register("rows", _rows)
alt.data_transformers.enable("rows")


def show(
    build: Build,
    *arguments: Any,
    key: str,
    on_pick: Callable[[], None] | None = None,
    **settings: Any,
) -> None:
    """Draw the chart `build(*arguments, **settings)` on the page, as wide as its column.

    on_pick: called when the visitor picks a mark, for charts with a selection; the marks picked are
    in `st.session_state[key]`.
    """
    described = specification(build, *arguments, **settings, ink=theme.ink(), paper=theme.paper())
    place = st.container(key=f"picture_{key}")  # by this name it can be shown alone: pictures.js
    place.vega_lite_chart(described, key=key, on_select=on_pick or "ignore")


def show_live(
    described: Specification, *, key: str, on_pick: Callable[[], None] | None = None
) -> None:
    """Draw a chart that is repainted while something runs, with other numbers every time.

    It comes as a Vega-Lite dictionary: building an Altair chart for each repaint costs the server
    more than ten times as much. on_pick: as of `show`.
    """
    coloured = _coloured(described, theme.ink(), theme.paper())
    st.vega_lite_chart(coloured, key=key, on_select=on_pick or "ignore")


def specification(
    build: Build, *arguments: Any, ink: str, paper: str, **settings: Any
) -> Specification:
    """The Vega-Lite description of `build(*arguments, **settings)`; the function may be a live one.

    ink, paper: the colours of its text and of the background.
    """
    return _coloured(_description(build, *arguments, **settings), ink, paper)


def _coloured(described: Specification, ink: str, paper: str) -> Specification:
    """The same chart with the shared look; what is changed in it later stays out of the cache."""
    # Streamlit changes legends in what it is given. It leaves the rows, the large part, alone.
    description = copy.deepcopy({name: part for name, part in described.items() if name != "data"})
    description.setdefault("padding", {"right": 12})  # half of the last label stands outside
    description["config"] = _merged(style.config(ink, paper), description.get("config", {}))
    return {**described, **description}


def _key(build: Build, *arguments: Any, **settings: Any) -> tuple[Hashable, ...]:
    """The function, and a digest of the content of what it is given.

    All visitors share the cache: nobody must be able to find two texts with the same digest.
    """
    content = pickle.dumps((arguments, settings))
    return (build.__module__, build.__qualname__, hashlib.sha256(content).digest())


@cached(key=_key)
def _description(build: Build, *arguments: Any, **settings: Any) -> Specification:
    chart = build(*arguments, **settings)
    if isinstance(chart, dict):
        return chart
    described: Specification = chart.to_dict(validate=CHECKED)
    del described["$schema"]
    _put_rows(described, described.pop("datasets", {}))
    view = described.get("config", {}).get("view", {})
    for name in ("continuousWidth", "continuousHeight"):  # Altair's own sizes, in place of ours
        view.pop(name, None)
    return described


def _put_rows(part: Specification, tables: dict[str, list[Any]]) -> None:
    """Put the rows of each table into the description, where Altair has left the table's name.

    Altair keeps tables apart, so that it neither converts nor checks each of their values.
    """
    name = part.get("data", {}).get("name")
    if name in tables:
        part["data"] = {"values": tables[name]}
    for layer in part.get("layer", []):
        _put_rows(layer, tables)


def _merged(below: Specification, above: Specification) -> Specification:
    """One description with the entries of both; an entry that both have is taken from `above`."""
    merged = dict(below)
    for name, value in above.items():
        merged[name] = _merged(below.get(name, {}), value) if isinstance(value, dict) else value
    return merged
