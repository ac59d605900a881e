"""The chart of what each layer adds to one token."""

from __future__ import annotations

import altair as alt
import pandas as pd

from pages.start.one_pass.layers import ATTENTION, FEED_FORWARD
from ui.charts import style


def added_chart(table: pd.DataFrame) -> alt.Chart:
    """Bars of what each half of a layer adds to one token. Table: `layers.added`."""
    return (
        alt.Chart(table, height=230)
        .mark_bar()
        .encode(
            alt.X("layer:O", title="layer", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
            alt.XOffset("part:N", sort=[ATTENTION, FEED_FORWARD]),
            alt.Y(
                "length:Q",
                title="length of the added vector",
                axis=alt.Axis(tickCount=5),
            ),
            alt.Color(
                "part:N",
                title=None,
                scale=alt.Scale(
                    domain=[ATTENTION, FEED_FORWARD], range=[style.ATTENTION, style.FEED_FORWARD]
                ),
                legend=alt.Legend(orient="top", symbolOpacity=1, symbolType="square"),
            ),
            tooltip=[
                alt.Tooltip("layer:O", title="layer"),
                alt.Tooltip("part:N", title="half of the layer"),
                alt.Tooltip("length:Q", title="length", format=".4~g"),
            ],
        )
    )
