"""Altair charts in the colours of the theme: built once for the same numbers, then only sent.

A chart is a function from data (a `pandas.DataFrame`, usually) to an Altair chart. It chooses marks
and encodings; text colours, the frame and the legend's look are added here for every chart.

Building a chart and checking it against the schema takes 15 to 30 ms. A page runs again at every
click, so the finished descriptions are kept by the function and the content of its arguments.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Hashable
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st
from cachetools import LRUCache, cached

from ui.charts import style, theme

Build = Callable[..., alt.TopLevelMixin]
Specification = dict[str, Any]  # a Vega-Lite description

# The visitor's colours of text and of the background, for marks: named here, filled in at the end.
INK, PAPER = alt.expr("ink"), alt.expr("paper")

alt.data_transformers.disable_max_rows()  # what a page may ask for is bounded by serving.limits
alt.data_transformers.consolidate_datasets = False  # data stand in the chart that draws them


def show(build: Build, *arguments: Any, key: str) -> None:
    """Draw the chart `build(*arguments)` on the page, as wide as its column."""
    described = specification(build, *arguments, ink=theme.ink(), paper=theme.paper())
    st.vega_lite_chart(described, key=key)


def specification(build: Build, *arguments: Any, ink: str, paper: str) -> Specification:
    """The Vega-Lite description of `build(*arguments)`, in these colours of text and background."""
    described = copy.copy(_description(build, *arguments))
    described["config"] = _merged(style.config(ink), described.get("config", {}))
    described["config"]["params"] = [
        {"name": "ink", "value": ink},
        {"name": "paper", "value": paper},
    ]
    return described


def _key(build: Build, *arguments: Any) -> tuple[Hashable, ...]:
    return (build.__module__, build.__qualname__, *map(_content, arguments))


def _content(argument: Any) -> Hashable:
    """What tells one argument from another: the bytes of tables and arrays, else the value."""
    if isinstance(argument, pd.DataFrame):
        rows = pd.util.hash_pandas_object(argument).to_numpy().tobytes()
        return (tuple(argument.columns), rows)
    if isinstance(argument, np.ndarray):
        return (argument.shape, str(argument.dtype), argument.tobytes())
    if isinstance(argument, dict):
        return tuple((name, _content(value)) for name, value in argument.items())
    if isinstance(argument, list | tuple):
        return tuple(map(_content, argument))
    return argument  # type: ignore[no-any-return]  # unhashable ones fail where they are looked up


@cached(LRUCache(maxsize=256), key=_key, condition=threading.Condition())
def _description(build: Build, *arguments: Any) -> Specification:
    described: Specification = build(*arguments).to_dict()
    del described["$schema"]
    view = described.get("config", {}).get("view", {})
    for name in ("continuousWidth", "continuousHeight"):  # Altair's own sizes, in place of ours
        view.pop(name, None)
    return described


def _merged(below: Specification, above: Specification) -> Specification:
    """Both descriptions; where they meet, `above` holds."""
    both = dict(below)
    for name, value in above.items():
        both[name] = _merged(below.get(name, {}), value) if isinstance(value, dict) else value
    return both
