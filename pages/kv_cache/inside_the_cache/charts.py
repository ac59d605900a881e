"""Charts of the page "Inside the cache", drawn from tables."""

from __future__ import annotations

import altair as alt
import pandas as pd

from pages.kv_cache.inside_the_cache.numbers import ALLOCATED, USED
from pages.kv_cache.inside_the_cache.overflow_runs import DIVERGENCE, FIRST, LARGEST, RESTART, RING
from ui.charts.style import BLUE, GREEN, INK, MARKS, VERMILLION
from ui.text.formatting import difference


def bytes_chart(table: pd.DataFrame, step_index: int) -> alt.TopLevelMixin:
    """Chart the bytes allocated and used after every step.

    table: as `numbers.bytes_held`. step_index: the step marked by a line, from 0.
    """
    names = [ALLOCATED, USED]
    most = float(table["bytes"].max()) * 1.05
    colours = alt.Scale(domain=names, range=[VERMILLION, BLUE])
    dashes = alt.Scale(domain=names, range=[[6, 3], [1, 0]])
    lines = (
        alt.Chart(table)
        .mark_line(point=alt.OverlayMarkDef(size=30), strokeWidth=2)
        .encode(
            _steps(table),
            alt.Y(
                "bytes:Q",
                title="bytes",
                axis=alt.Axis(format=",d"),
                scale=alt.Scale(domain=[0, most]),
            ),
            alt.Color("what:N", title=None, legend=_line_legend(), scale=colours),
            alt.StrokeDash("what:N", legend=None, scale=dashes),
            tooltip=[
                alt.Tooltip("step:Q"),
                alt.Tooltip("what:N"),
                alt.Tooltip("bytes:Q", format=",d"),
            ],
        )
    )
    return alt.layer(lines, _step_rule(step_index), height=240)


def difference_chart(table: pd.DataFrame, step_index: int) -> alt.TopLevelMixin:
    """Chart the largest logit difference per step, from `numbers.logit_differences`."""
    line = (
        alt.Chart(table.assign(shown=table["difference"].map(difference)))
        .mark_line(point=alt.OverlayMarkDef(size=40), color=BLUE, strokeWidth=2)
        .encode(
            _steps(table),
            alt.Y(
                "difference:Q",
                title="largest logit difference",
                axis=alt.Axis(labelExpr=MARKS),
                scale=alt.Scale(zero=True),
            ),
            tooltip=[
                alt.Tooltip("step:Q"),
                alt.Tooltip("shown:N", title="difference"),
                alt.Tooltip("same:N", title="same token"),
            ],
        )
    )
    return alt.layer(line, _step_rule(step_index), height=240)


def drift_chart(table: pd.DataFrame, last_fitting: int, step_index: int) -> alt.TopLevelMixin:
    """Chart the logit differences between the three methods and the full context.

    table: as `full.table`. last_fitting: the last step, from 1, whose token fits into the cache.
    step_index: the step marked by a dotted line, from 0.
    """
    ways = [RESTART, RING, FIRST]
    colours = alt.Scale(domain=ways, range=[GREEN, VERMILLION, BLUE])
    dashes = alt.Scale(domain=ways, range=[[6, 3], [1, 0], [2, 2]])
    legend = _line_legend(columns=2)  # fits on a phone
    lines = (
        alt.Chart(table)
        .mark_line(point=alt.OverlayMarkDef(size=35), strokeWidth=2)
        .encode(
            _steps(table),
            alt.Y(f"{LARGEST}:Q", title=LARGEST),
            alt.Color("way:N", title=None, legend=legend, scale=colours),
            alt.StrokeDash("way:N", legend=None, scale=dashes),
            tooltip=[
                alt.Tooltip("step:Q"),
                alt.Tooltip("way:N"),
                alt.Tooltip(f"{LARGEST}:Q", format=".3f"),
                alt.Tooltip(f"{DIVERGENCE}:Q", format=".4f"),
                alt.Tooltip("most likely:N"),
                alt.Tooltip("with full context:N"),
            ],
        )
    )
    full = alt.Chart(pd.DataFrame({"step": [last_fitting + 0.5]})).mark_rule(color=INK)
    return alt.layer(
        lines, full.encode(alt.X("step:Q", title="step")), _step_rule(step_index), height=300
    )


def _steps(table: pd.DataFrame) -> alt.X:
    return alt.X(
        "step:Q",
        title="step",
        axis=alt.Axis(tickMinStep=1),
        scale=alt.Scale(domain=[1, max(int(table["step"].max()), 2)], nice=False),
    )


def _step_rule(step_index: int) -> alt.Chart:
    """A dotted line at the selected step."""
    line_at_step = alt.Chart(pd.DataFrame({"step": [step_index + 1]}))
    return line_at_step.mark_rule(color=INK, strokeDash=[2, 3]).encode(
        alt.X("step:Q", title="step")
    )


def _line_legend(columns: int = 3) -> alt.Legend:
    """A legend with short lines, because circles would get dashed edges."""
    return alt.Legend(
        orient="top", columns=columns, symbolType="stroke", symbolSize=300, symbolStrokeWidth=3
    )
