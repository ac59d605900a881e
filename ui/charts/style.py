"""What charts share: colours, the look of text and frame, and axes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import altair as alt

CACHED, UNCACHED = "with the cache", "without the cache"

# Okabe and Ito: readable by colour-blind people, on white and on dark.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"
SERIES = [VERMILLION, BLUE, GREEN, PURPLE, ORANGE]

# What a quantity looks like on every page: ui/canvas/shared/colours.js has the same. Weights go
# from none to the largest; signed numbers from below 0 to above it, on white and on dark.
QUERIES, KEYS, VALUES = "#C46A9B", "#009E73", "#D55E00"
WEIGHTS = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e"]
WEIGHTS += ["#1f9e89", "#35b779", "#90d743", "#fde725"]
SIGNED = ["#003264", "#146eaa", "#82b9de", "#f6f6f6", "#f2b068", "#c4620a", "#782c00"]
SIGNED_ON_DARK = ["#a0d7ff", "#409cde", "#205886", "#1c2128", "#844c1e", "#d87e22", "#ffc478"]

# The colours of text and background, for marks: names that `config` gives their values. So a chart
# is built once for both themes.
INK, PAPER = alt.expr("ink"), alt.expr("paper")


def config(ink: str, paper: str) -> dict[str, Any]:
    """What all charts share: text in the colour `ink`, no frame, values of `INK` and `PAPER`."""
    return {
        "view": {"strokeWidth": 0},
        "axis": {"labelColor": ink, "titleColor": ink},
        "legend": {"labelColor": ink, "titleColor": ink},
        "title": {"color": ink, "subtitleColor": ink},
        "params": [{"name": "ink", "value": ink}, {"name": "paper", "value": paper}],
    }


def label_of_place(labels: Sequence[str]) -> str:
    """For `labelExpr`: a Vega expression that turns a place (0, 1, …) into its label.

    The labels are JSON strings in it, so that no text of a visitor is read as an expression.
    """
    return f"{json.dumps(list(labels))}[datum.value]"


def decades(values: Sequence[float]) -> dict[str, Any]:
    """`scale` and `axis` of a logarithmic axis over whole powers of ten, with at most 8 marks.

    The values must be positive.
    """
    low = math.floor(math.log10(min(values)))
    high = max(math.ceil(math.log10(max(values))), low + 1)
    powers_apart = math.ceil((high - low) / 7)
    return {
        "scale": {"type": "log", "domain": [10.0**low, 10.0**high], "nice": False},
        "axis": {
            "values": [10.0**power for power in range(high, low - 1, -powers_apart)],
            "format": "~g",
        },
    }
