"""Colors, text styles and axes that charts share."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from ui.text.formatting import prettify

CACHED, UNCACHED = "with the cache", "without the cache"
MAX_NAMED = 20  # with more tokens on an axis, overlapping labels are hidden

# Series: Okabe and Ito's colors, which color-blind people can tell apart. Their orange is too pale
# on white, so it's darker here.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#C88400"
GREY = "#808890"  # for the less important series
SERIES = [VERMILLION, BLUE, GREEN, PURPLE, ORANGE]

# Quantities with the same color on every page. ui/canvas/shared/colours.js has the same colors and
# explains how they were chosen.
QUERIES, KEYS, VALUES, POSITIONS = "#9E4A8A", "#009E73", "#C94A00", "#3A93C4"
STREAM, ATTENTION, FEED_FORWARD = "#5F6872", "#0072B2", "#C88400"
HEADS = ["#0072b2", "#d55e00", "#009e73", "#c46a9b", "#6090fc", "#b43c24"]  # by head index
HEADS += ["#84546c", "#cc0ca8", "#489ccc", "#3048fc", "#fc5460", "#3c78e4"]
# Color scales: weights from 0 to the largest, and signed numbers on light and dark backgrounds.
WEIGHTS = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e"]
WEIGHTS += ["#1f9e89", "#35b779", "#90d743", "#fde725"]
SIGNED = ["#003264", "#146eaa", "#82b9de", "#f6f6f6", "#f2b068", "#c4620a", "#782c00"]
SIGNED_ON_DARK = ["#a0d7ff", "#409cde", "#205886", "#1c2128", "#844c1e", "#d87e22", "#ffc478"]

# Text and background colors for marks. `config` sets their values, so that one specification works
# for both themes.
INK, PAPER = alt.expr("ink"), alt.expr("paper")


_LETTERS = {"labelFontSize": 13, "titleFontSize": 13}


def config(ink: str, paper: str) -> dict[str, Any]:
    """The shared configuration: text color, no frame, and the values of `INK` and `PAPER`."""
    return {
        "view": {"strokeWidth": 0},
        "axis": {"labelColor": ink, "titleColor": ink, **_LETTERS},
        "legend": {"labelColor": ink, "titleColor": ink, **_LETTERS},
        "title": {"color": ink, "subtitleColor": ink},
        "params": [{"name": "ink", "value": ink}, {"name": "paper", "value": paper}],
    }


def _marks() -> str:
    power = "floor(log(datum.value) / LN10 + 1e-9)"
    raised = [prettify(0, f"1e{n:+d}").removeprefix("1 × ") for n in range(-45, 46)]
    powers = json.dumps(raised, ensure_ascii=False)
    digits = f"format(datum.value / pow(10, {power}), '.2~r')"
    in_powers = f"({digits} == '1' ? '' : {digits} + ' × ') + {powers}[{power} + 45]"
    plain = "datum.value == 0 || (datum.value >= 1e-4 && datum.value < 1e6)"
    return f"{plain} ? format(datum.value, ',.6~r') : {in_powers}"


# `labelExpr` for nonnegative numbers: decimals, or powers of ten for very small and large numbers.
MARKS = _marks()


def position_label_expr(labels: Sequence[str]) -> str:
    """A `labelExpr` that maps positions to labels; they're JSON strings, so nothing is executed."""
    return f"{json.dumps(list(labels))}[datum.value]"


def token_axis(labels: Sequence[str]) -> alt.Axis:
    """An axis of positions with slanted labels; overlapping ones are hidden if there are many."""
    many = len(labels) > MAX_NAMED
    return alt.Axis(
        labelExpr=position_label_expr(labels), labelAngle=-60, labelLimit=90, labelOverlap=many
    )


def decades(values: Sequence[float]) -> dict[str, Any]:
    """`scale` and `axis` of a logarithmic axis over whole powers of ten, with at most 8 ticks.

    Values without a logarithm, such as 0, are ignored; if none are left, the axis is 1 to 10.
    """
    positive = [value for value in values if 0 < value < math.inf] or [1.0]
    low = math.floor(math.log10(min(positive)))
    high = max(math.ceil(math.log10(max(positive))), low + 1)
    powers_apart = math.ceil((high - low) / 7)
    return {
        "scale": {"type": "log", "domain": [10.0**low, 10.0**high], "nice": False},
        "axis": {
            "values": [10.0**power for power in range(high, low - 1, -powers_apart)],
            "labelExpr": MARKS,
        },
    }
