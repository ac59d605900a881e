"""Test charts: a shared palette, cached specifications, and labels that stay text."""

import json
import math
from xml.etree import ElementTree

import altair as alt
import numpy as np
import pandas as pd
import pytest

from tests.helpers.charts import svg
from ui.charts import show
from ui.charts.bars import bars, label_table

DARK = {"ink": "#fafbfc", "paper": "#0a0b0c"}
HOSTILE = [
    "a[0].b",
    '"]; alert(1); ["',
    "\\u0022] + 1",
    "</script><img>",
    "\u2028\u202e",
    "été 👍🏽",
]


def test_chart_is_built_once_for_the_same_content(monkeypatch: pytest.MonkeyPatch):
    calls = []

    def counting_bars(table: pd.DataFrame, title: str, **settings: object) -> alt.Chart:
        calls.append(title)
        return bars(table, title, **settings)  # type: ignore[arg-type]

    def build(value: float, title: str, **settings: object) -> show.Specification:
        return show.specification(
            counting_bars, label_table(["a", "b"], [1.0, value]), title, **DARK, **settings
        )

    first = build(2.0, "t")
    first["encoding"]["x"]["title"] = "changed by who got it"
    assert build(2.0, "t")["encoding"]["x"]["title"] == "t"
    assert calls == ["t"]
    for other in (
        lambda: build(2.5, "t"),
        lambda: build(2.0, "u"),
        lambda: build(2.0, "t", height=5),
        lambda: build(2.0, "t", largest=3.0),
    ):
        before = len(calls)
        other()
        assert len(calls) == before + 1


def test_bar_labels_are_always_text():
    table = label_table(HOSTILE, [float(n) for n in range(1, len(HOSTILE) + 1)])
    chart = show.specification(bars, table, "how much", **DARK)
    assert [row["label"] for row in chart["data"]["values"]] == HOSTILE
    fields = {chart["encoding"][axis]["field"] for axis in "xy"}
    assert fields == {"place", "value"}
    expression = chart["encoding"]["y"]["axis"]["labelExpr"]
    assert expression.endswith("[datum.value]")
    assert json.loads(expression.removesuffix("[datum.value]")) == HOSTILE
    drawn = ElementTree.fromstring(svg(chart))
    texts = "".join(drawn.itertext())
    assert all(label.strip() in texts for label in HOSTILE)


def test_rows_match_altair():
    table = pd.DataFrame(
        {
            "whole": [0, -7, 2**40],
            "small": np.array([0.1, np.nan, 1e-30], dtype=np.float32),
            "number": [0.1, math.inf, math.nan],
            "true": [True, False, True],
            "text": ["été", "", None],
            "kind": pd.Categorical(["a", None, "b"]),
            "mixed": [1, "two", None],
        },
        index=[5, 5, 9],
    )
    chart = show.specification(lambda rows: alt.Chart(rows).mark_point(), table, **DARK)
    values = chart["data"]["values"]
    assert json.dumps(values) == json.dumps(alt.to_values(table)["values"])
    assert [row["small"] for row in values] == [
        float(np.float32(0.1)),
        None,
        float(np.float32(1e-30)),
    ]
    assert [row["text"] for row in values] == ["été", "", None]
    assert [row["number"] for row in values] == [0.1, None, None]
