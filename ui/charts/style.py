"""What charts share: colours, the look of text and frame, and axes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from ui.text.number_text import legible

CACHED, UNCACHED = "with the cache", "without the cache"
MOST_NAMED = 20  # tokens of an axis: up to so many all have their names, of more some give way

# Series that are told apart, whatever they are: Okabe and Ito's colours, which colour-blind people
# can tell apart. Their orange is too pale on white, and darker here.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#C88400"
GREY = "#808890"  # what others stand out from
SERIES = [VERMILLION, BLUE, GREEN, PURPLE, ORANGE]

# What a thing is on every page: ui/canvas/shared/colours.js has the same, and says why these.
QUERIES, KEYS, VALUES, POSITIONS = "#9E4A8A", "#009E73", "#C94A00", "#3A93C4"
STREAM, ATTENTION, FEED_FORWARD = "#5F6872", "#0072B2", "#C88400"
HEADS = ["#0072b2", "#d55e00", "#009e73", "#c46a9b", "#6090fc", "#b43c24"]  # by their numbers
HEADS += ["#84546c", "#cc0ca8", "#489ccc", "#3048fc", "#fc5460", "#3c78e4"]
# Weights from none to the largest; signed numbers from below 0 to above it, on white and on dark.
WEIGHTS = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e"]
WEIGHTS += ["#1f9e89", "#35b779", "#90d743", "#fde725"]
SIGNED = ["#003264", "#146eaa", "#82b9de", "#f6f6f6", "#f2b068", "#c4620a", "#782c00"]
SIGNED_ON_DARK = ["#a0d7ff", "#409cde", "#205886", "#1c2128", "#844c1e", "#d87e22", "#ffc478"]

# The colours of text and background, for marks: names that `config` gives their values. So a chart
# is built once for both themes.
INK, PAPER = alt.expr("ink"), alt.expr("paper")


_LETTERS = {"labelFontSize": 13, "titleFontSize": 13}


def config(ink: str, paper: str) -> dict[str, Any]:
    """What all charts share: text in the colour `ink`, no frame, values of `INK` and `PAPER`."""
    return {
        "view": {"strokeWidth": 0},
        "axis": {"labelColor": ink, "titleColor": ink, **_LETTERS},
        "legend": {"labelColor": ink, "titleColor": ink, **_LETTERS},
        "title": {"color": ink, "subtitleColor": ink},
        "params": [{"name": "ink", "value": ink}, {"name": "paper", "value": paper}],
    }


def _marks() -> str:
    power = "floor(log(datum.value) / LN10 + 1e-9)"
    raised = [legible(0, f"1e{n:+d}").removeprefix("1 × ") for n in range(-45, 46)]
    powers = json.dumps(raised, ensure_ascii=False)
    digits = f"format(datum.value / pow(10, {power}), '.2~r')"
    in_powers = f"({digits} == '1' ? '' : {digits} + ' × ') + {powers}[{power} + 45]"
    plain = "datum.value == 0 || (datum.value >= 1e-4 && datum.value < 1e6)"
    return f"{plain} ? format(datum.value, ',.6~r') : {in_powers}"


# For `labelExpr` of numbers that are not negative: decimals, and beyond them powers of ten.
MARKS = _marks()


def label_of_place(labels: Sequence[str]) -> str:
    """For `labelExpr`: turns a place into its label, a JSON string: no text is read as code."""
    return f"{json.dumps(list(labels))}[datum.value]"


def axis_of_tokens(labels: Sequence[str]) -> alt.Axis:
    """An axis of places with these labels, which stand aslant and give way where they are many."""
    many = len(labels) > MOST_NAMED
    return alt.Axis(
        labelExpr=label_of_place(labels), labelAngle=-60, labelLimit=90, labelOverlap=many
    )


def decades(values: Sequence[float]) -> dict[str, Any]:
    """`scale` and `axis` of a logarithmic axis over whole powers of ten, with at most 8 marks.

    Values that have no logarithm, such as 0, are left out; if none remain, it is 1 to 10.
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
