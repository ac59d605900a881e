"""Bar charts that keep the order of their labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair as alt
import pandas as pd

from ui.charts.style import BLUE, GREY, MAX_NAMED, position_label_expr, token_axis


def bars(
    table: pd.DataFrame,
    title: str,
    *,
    horizontal: bool = True,
    largest: float | None = None,
    height: int = 260,
    of: str = "token",
) -> alt.Chart:
    """Draw a bar for each row of a table with columns `label` and `value`, in the table's order.

    Labels may repeat. An optional column `colour` sets each bar's color. title: the title of the
    value axis. of: the title of the label axis. largest: the end of the value axis.
    """
    labels = [str(label) for label in table["label"]]
    names = alt.Axis(
        labelExpr=position_label_expr(labels),
        labelLimit=220,
        labelAngle=0 if horizontal or all(len(label) < 2 for label in labels) else -60,
        labelOverlap=not horizontal and len(labels) > MAX_NAMED,
    )
    scale = alt.Scale(zero=True) if largest is None else alt.Scale(domain=[0, largest])
    of_values, of_places = (alt.X, alt.Y) if horizontal else (alt.Y, alt.X)
    colour = [alt.Color("colour:N", scale=None)] if "colour" in table else []
    return (
        alt.Chart(table.assign(place=range(len(table))), height=height)
        .mark_bar(color=BLUE)
        .encode(
            of_values("value:Q", title=title, scale=scale),
            of_places("place:O", title=of, axis=names),
            *colour,
            tooltip=[
                alt.Tooltip("label:N", title=of),
                alt.Tooltip("value:Q", title=title, format=",.4~r" if largest else ",.6~r"),
            ],
        )
    )


def paired_bars(
    table: pd.DataFrame,
    kinds: tuple[str, str],
    labels: Sequence[str],
    *,
    of: str,
    kind: str,
    value: str,
    tooltip: Sequence[alt.Tooltip],
    height: int,
) -> alt.Chart:
    """Draw two adjacent bars for each row of a table, from its columns `kinds`; the first is gray.

    labels: the labels of the rows, by the column `position`. of: the title of the label axis. kind,
    value: names for the columns with each bar's kind and height, which `tooltip` can use.
    """
    domain = list(kinds)
    return (
        alt.Chart(table.melt(table.columns.difference(domain), domain, kind, value), height=height)
        .mark_bar()
        .encode(
            alt.X("position:O", title=of, axis=token_axis(labels)),
            alt.XOffset(f"{kind}:N", sort=domain),
            alt.Y(f"{value}:Q", title=value),
            alt.Color(
                f"{kind}:N",
                title=None,
                scale=alt.Scale(domain=domain, range=[GREY, BLUE]),
                legend=alt.Legend(orient="top", symbolType="square", symbolOpacity=1),
            ),
            tooltip=list(tooltip),
        )
    )


def label_table(labels: Iterable[str], values: Iterable[float]) -> pd.DataFrame:
    """A table of labels and values for `bars`."""
    return pd.DataFrame({"label": list(labels), "value": [float(value) for value in values]})
