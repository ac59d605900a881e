"""Chart of the page "Against PyTorch"."""

from __future__ import annotations

import altair as alt
import pandas as pd

from ui.charts.style import MARKS, SERIES

_TICKS = [step * 10.0**power for power in range(-2, 4) for step in (1, 2, 5)]  # ms
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross"]


def times_chart(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Time per call by number of heads, on logarithmic axes.

    Points are medians, and bars run from the fastest to the slowest call.
    table: columns `way`, `heads`, `median`, `low`, `high`, in milliseconds.
    """
    ways = list(table["way"].unique())
    legend = alt.Legend(orient="top", columns=1, labelLimit=300, title=None)
    base = alt.Chart().encode(
        alt.X(
            "heads:Q",
            title="heads (log scale)",
            scale=alt.Scale(type="log", nice=False, domain=[0.9, 107]),
            axis=alt.Axis(values=[1, 2, 4, 8, 16, 32, 64, 96], format="d"),
        ),
        alt.Color("way:N", scale=alt.Scale(domain=ways, range=SERIES), legend=legend),
        tooltip=[
            alt.Tooltip("way:N", title="implementation"),
            alt.Tooltip("heads:Q"),
            alt.Tooltip("median:Q", title="median, ms", format=".3f"),
            alt.Tooltip("low:Q", title="fastest, ms", format=".3f"),
            alt.Tooltip("high:Q", title="slowest, ms", format=".3f"),
        ],
    )
    ends = [float(table["low"].min()) * 0.9, float(table["high"].max()) * 1.1]
    time = alt.Y(
        "low:Q",
        title="milliseconds per call (log scale)",
        scale=alt.Scale(type="log", nice=False, domain=ends),
        axis=alt.Axis(labelExpr=MARKS, values=_TICKS),
    )
    return alt.layer(
        base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(time, alt.Y2("high")),
        base.mark_line(strokeWidth=2).encode(alt.Y("median:Q")),
        base.mark_point(filled=True, size=55, opacity=1).encode(
            alt.Y("median:Q"),
            alt.Shape("way:N", scale=alt.Scale(domain=ways, range=_SHAPES), legend=legend),
        ),
        data=table,
        height=560,
    )
