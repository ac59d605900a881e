"""Show Altair charts in the colors of the theme, and cache their specifications.

A chart is a function that takes data (usually a `pandas.DataFrame`) and a few settings and returns
an Altair chart. It chooses marks and encodings. The colors of text and background, the frame and
the legend's style are added here. `style.INK` is the text color for marks.

The function passes channel objects to `encode` (`alt.Text("label:N")`, not `text="label:N"`), with
their properties as keywords (`alt.X("tokens:Q", title="tokens")`, not `.title("tokens")`). Altair
needs 2 to 8 ms to infer a channel from a string, a value or a condition, and up to 1 ms for each
method.

Building a chart takes 1 to 15 ms, and a page reruns on every click. So specifications are cached by
the function and the content of its arguments.
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

Specification = dict[str, Any]  # a Vega-Lite specification
Build = Callable[..., alt.TopLevelMixin | Specification]

# Validating a chart takes twice as long as building it. Charts differ only in their numbers, and
# the tests validate every one of them, so it's off here.
CHECKED = False
disable_debug_mode()  # turns off validation of each part of a chart


def _rows(table: pd.DataFrame) -> Specification:
    """Convert a table's rows to JSON values, five times as fast as `altair.to_values`.

    Altair's row limit isn't needed, because `serving.limits` limits every request.
    """
    names = list(table)
    columns = [[_plain(value) for value in table[name].tolist()] for name in names]
    return {"values": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]}


def _plain(value: Any) -> Any:
    """Replace NaN and infinity with None, because JSON has only finite numbers."""
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
    """Draw the chart `build(*arguments, **settings)`, as wide as its column.

    on_pick: for charts with a selection; called when the visitor selects a mark. The selected marks
    are in `st.session_state[key]`.
    """
    described = specification(build, *arguments, **settings, ink=theme.ink(), paper=theme.paper())
    place = st.container(key=f"picture_{key}")  # lets pictures.js embed the chart
    place.vega_lite_chart(described, key=key, on_select=on_pick or "ignore")


def show_live(
    specification: Specification, *, key: str, on_pick: Callable[[], None] | None = None
) -> None:
    """Draw a chart that is redrawn with new numbers while something runs.

    It's a Vega-Lite dictionary, because building an Altair chart for each redraw takes the server
    more than ten times as long. on_pick: see `show`.
    """
    coloured = _apply_theme(specification, theme.ink(), theme.paper())
    st.vega_lite_chart(coloured, key=key, on_select=on_pick or "ignore")


def specification(
    build: Build, *arguments: Any, ink: str, paper: str, **settings: Any
) -> Specification:
    """The Vega-Lite specification of `build(*arguments, **settings)`.

    `build` may return an Altair chart or a dictionary. ink, paper: text and background colors.
    """
    return _apply_theme(_description(build, *arguments, **settings), ink, paper)


def _apply_theme(specification: Specification, ink: str, paper: str) -> Specification:
    """A copy of a chart with the shared style, so that later changes don't affect the cache."""
    # Streamlit modifies legends in place, but not the rows, which take up most of the memory.
    description = copy.deepcopy(
        {name: part for name, part in specification.items() if name != "data"}
    )
    description.setdefault(
        "padding", {"right": 12}
    )  # half of the last label extends beyond the axis
    description["config"] = _merged(style.config(ink, paper), description.get("config", {}))
    return {**specification, **description}


def _key(build: Build, *arguments: Any, **settings: Any) -> tuple[Hashable, ...]:
    """The function's name and a digest of its arguments.

    All visitors share the cache, so the digest must be collision-resistant.
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
    for name in (
        "continuousWidth",
        "continuousHeight",
    ):  # Altair's default sizes would override ours
        view.pop(name, None)
    return described


def _put_rows(part: Specification, tables: dict[str, list[Any]]) -> None:
    """Replace table names with the tables' rows.

    Altair keeps tables separate, so that it doesn't convert and validate each value.
    """
    name = part.get("data", {}).get("name")
    if name in tables:
        part["data"] = {"values": tables[name]}
    for layer in part.get("layer", []):
        _put_rows(layer, tables)


def _merged(below: Specification, above: Specification) -> Specification:
    """Merge two specifications; entries of `above` take precedence."""
    merged = dict(below)
    for name, value in above.items():
        merged[name] = _merged(below.get(name, {}), value) if isinstance(value, dict) else value
    return merged
