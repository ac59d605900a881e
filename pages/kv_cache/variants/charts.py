"""Charts of the page "Variants", drawn from tables."""

from __future__ import annotations

import altair as alt
import pandas as pd

from pages.kv_cache.variants.key_readers import Ladder
from ui.charts.style import BLUE, GREY, INK, VERMILLION
from ui.text.formatting import format_number

ROW = 34  # height of a bar in pixels
HIDDEN, ATTENTION = (
    "last hidden states: relative difference",
    "attention: share moved to other tokens",
)


def sizes(ladder: Ladder) -> pd.DataFrame:
    """One row per form: measured `bytes` and `kB`, `formula` in kB, and a `label`."""
    return pd.DataFrame(
        {
            "form": form.name,
            "kB": form.measured_bytes / 1e3,
            "formula": form.formula_bytes / 1e3,
            "bytes": form.measured_bytes,
            "label": f"{format_number(form.measured_bytes / 1e3, ',.3g')} kB"
            if form.measured_bytes < 1e5
            else f"{form.measured_bytes / 1e3:,.0f} kB",
        }
        for form in ladder.forms.values()
    )


def cache_sizes(table: pd.DataFrame, choice: str) -> alt.TopLevelMixin:
    """Chart each form's measured bytes as a bar, with a mark for the formula's result.

    table: as `sizes`. choice: the highlighted form.
    """
    y = alt.Y(
        "form:N",
        sort=list(table["form"]),
        title="form of attention",
        axis=alt.Axis(labelLimit=160, labelOverlap=False),
    )
    forms = alt.Chart().encode(y)
    tooltip = [
        alt.Tooltip("form:N"),
        alt.Tooltip("bytes:Q", title="measured, bytes", format=",d"),
        alt.Tooltip("formula:Q", title="formula, kB", format=",.3f"),
    ]
    most = float(table["kB"].max()) * 1.35
    bars = forms.mark_bar(height=alt.RelativeBandSize(0.7)).encode(
        _kilobytes("kB", most),
        alt.ColorValue(GREY, condition=[{"test": "datum.chosen", "value": BLUE}]),
        tooltip=tooltip,
    )
    marks = forms.mark_tick(thickness=3, color=INK, height=alt.RelativeBandSize(0.9)).encode(
        _kilobytes("formula", most), tooltip=tooltip
    )
    labels = forms.mark_text(align="left", dx=7, color=INK).encode(
        _kilobytes("kB", most), alt.Text("label:N")
    )
    rows = table.assign(chosen=table["form"] == choice)
    return alt.layer(bars, marks, labels, data=rows, height=ROW * len(table) + 40)


def _kilobytes(column: str, most: float) -> alt.X:
    return alt.X(
        f"{column}:Q",
        title="kB of cache after the prompt, all layers",
        scale=alt.Scale(domain=[0, most], nice=False),
        axis=alt.Axis(tickCount=4, labelBound=True),
    )


def drifts(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Chart what pooling changes, by the number of key/value heads left.

    table: "heads", "what" (HIDDEN or ATTENTION), "value", and "low" and "high", the range over
    the tokens or the heads of all layers.
    """
    kinds = [HIDDEN, ATTENTION]
    order = sorted({int(heads) for heads in table["heads"]}, reverse=True)
    legend = alt.Legend(orient="top", columns=1, labelLimit=320, symbolOpacity=1)
    colours = alt.Scale(domain=kinds, range=[VERMILLION, BLUE])
    shapes = alt.Scale(domain=kinds, range=["circle", "diamond"])
    heads = alt.X("heads:O", sort=order, title="key/value heads left", axis=alt.Axis(labelAngle=0))
    chart = alt.Chart().encode(
        heads,
        alt.XOffset("what:N", scale=alt.Scale(domain=kinds)),
        alt.Color("what:N", title=None, legend=legend, scale=colours),
        tooltip=[
            alt.Tooltip("what:N"),
            alt.Tooltip("heads:O", title="key/value heads"),
            *(alt.Tooltip(f"{name}:Q", format=".4f") for name in ("value", "low", "high")),
        ],
    )
    ranges = chart.mark_rule(strokeWidth=3, opacity=0.5).encode(_mean("low"), alt.Y2("high"))
    means = chart.mark_point(filled=True, size=100, opacity=1).encode(
        _mean("value"), alt.Shape("what:N", title=None, legend=legend, scale=shapes)
    )
    return alt.layer(ranges, means, data=table, height=300)


def _mean(column: str) -> alt.Y:
    return alt.Y(f"{column}:Q", title="mean and range", scale=alt.Scale(zero=True))
