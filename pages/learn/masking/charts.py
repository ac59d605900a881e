"""Chart of the page "Masking": how dropout averages out."""

from __future__ import annotations

import altair as alt
import pandas as pd

from pages.learn.masking.numbers import EXPECTED, LARGEST, MAX_DRAWS, MEAN
from ui.charts.style import BLUE, INK, MARKS, VERMILLION


def convergence(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Deviations by number of draws, with fixed logarithmic axes.

    table: result of `numbers.average`, with `draws` and a column for each kind of deviation.
    """
    rows = table.melt("draws", var_name="what", value_name="deviation")
    rows = rows[rows["deviation"] > 0.0]  # a logarithmic axis can't show zero
    base = alt.Chart().encode(
        alt.X(
            "draws:Q",
            title="number of draws n",
            scale=alt.Scale(type="log", nice=False, domain=[1, MAX_DRAWS]),
            axis=alt.Axis(values=[1, 10, 100, 1_000, MAX_DRAWS], format=","),
        ),
        alt.Y(
            "deviation:Q",
            title="deviation from the original (weight)",
            scale=alt.Scale(type="log", nice=False, domain=[1e-4, 10]),
            axis=alt.Axis(values=[1e-4, 1e-3, 1e-2, 1e-1, 1, 10], labelExpr=MARKS),
        ),
        alt.Color(
            "what:N",
            title=None,
            scale=alt.Scale(domain=[LARGEST, MEAN, EXPECTED], range=[VERMILLION, BLUE, INK]),
            legend=alt.Legend(orient="top", columns=1, labelLimit=300, symbolType="stroke"),
        ),
        tooltip=[
            alt.Tooltip("what:N", title="what"),
            alt.Tooltip("draws:Q", title="draws", format=","),
            alt.Tooltip("deviation:Q", title="deviation", format=".6f"),
        ],
    )
    measurements = alt.FieldOneOfPredicate(field="what", oneOf=[LARGEST, MEAN])
    theory = alt.FieldEqualPredicate(field="what", equal=EXPECTED)
    return alt.layer(
        base.transform_filter(measurements).mark_line(point=True, clip=True),
        base.transform_filter(theory).mark_line(strokeDash=[6, 4], clip=True),
        data=rows,
        height=440,
    )
