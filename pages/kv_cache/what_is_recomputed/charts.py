"""Charts of the page "What is recomputed", drawn from tables.

Model names can be arbitrary text; they appear in a column and in the color legend.
"""

from __future__ import annotations

import altair as alt
import pandas as pd

from ui.charts.style import BLUE, CACHED, INK, UNCACHED, VERMILLION, decades
from ui.text.formatting import difference

FLOOR = 1e-9  # where a difference of exactly 0 is drawn on a logarithmic axis


def rows_so_far(totals: pd.DataFrame) -> pd.DataFrame:
    """Two rows per step: `rows` and `products` so far, with and without the cache.

    totals: as `counts.totals`.
    """
    return pd.DataFrame(
        {
            "step": int(row["step"]),
            "run": run,
            "rows": int(row[f"total rows, {which}"]),
            "products": int(row[f"total multiplications, {which}"]),
        }
        for _, row in totals.iterrows()
        for run, which in ((UNCACHED, "no cache"), (CACHED, "cache"))
    )


def totals_chart(table: pd.DataFrame, step_index: int) -> alt.TopLevelMixin:
    """Chart the rows processed so far, with a line at `step_index` (from 0)."""
    runs = [CACHED, UNCACHED]
    colours = alt.Scale(domain=runs, range=[BLUE, VERMILLION])
    shapes = alt.Scale(domain=runs, range=["circle", "square"])
    legend = alt.Legend(orient="top")
    steps = alt.X("step:O", axis=alt.Axis(labelAngle=0))
    counts = alt.Chart(table).encode(
        steps,
        alt.Y("rows:Q", title="rows processed so far, per layer"),
        alt.Color("run:N", title=None, legend=legend, scale=colours),
        tooltip=[
            alt.Tooltip("run:N"),
            alt.Tooltip("step:O"),
            alt.Tooltip("rows:Q", title="rows so far"),
            alt.Tooltip("products:Q", title="multiplications so far", format=",d"),
        ],
    )
    line_at_step = alt.Chart(pd.DataFrame({"step": [step_index + 1]})).encode(steps)
    return alt.layer(
        line_at_step.mark_rule(strokeDash=[4, 3], color=INK),
        counts.mark_line(strokeWidth=2),
        counts.mark_point(filled=True, opacity=1, size=70).encode(
            alt.Shape("run:N", title=None, legend=legend, scale=shapes)
        ),
        height=260,
    )


def contrast_chart(table: pd.DataFrame) -> alt.Chart:
    """Chart the relative change of old keys and values in each layer.

    A share of 0 isn't on the logarithmic axis, so it's drawn at its lower end, `FLOOR`.
    table: as `counts.contrast_table`.
    """
    models = list(table["model"].unique())
    drawn = table.assign(drawn=table["moved by"].astype(float).clip(lower=FLOOR))
    marks = decades([*drawn["drawn"].tolist(), 1.0])
    layers = [-0.5, int(table["layer"].max()) + 0.5]
    legend = alt.Legend(orient="top", columns=1, labelLimit=320)
    colours = alt.Scale(domain=models, range=[BLUE, VERMILLION][: len(models)])
    shapes = alt.Scale(domain=models, range=["circle", "square"][: len(models)])
    return (
        alt.Chart(drawn.assign(shown=drawn["moved by"].map(difference)), height=260)
        .mark_point(filled=True, opacity=1, size=60)
        .encode(
            alt.X(
                "layer:Q",
                title="layer",
                axis=alt.Axis(tickMinStep=1),
                scale=alt.Scale(domain=layers, nice=False),
            ),
            alt.Y("drawn:Q", title="largest change ÷ largest value", **marks),
            alt.Color("model:N", title=None, legend=legend, scale=colours),
            alt.Shape("model:N", title=None, legend=legend, scale=shapes),
            tooltip=[
                alt.Tooltip("model:N"),
                alt.Tooltip("layer:Q"),
                alt.Tooltip("shown:N", title="moved by"),
            ],
        )
    )
