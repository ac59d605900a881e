"""The charts of the page "Why attention": plain numbers in, a Vega-Lite dictionary out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pages.learn.why_attention.influence import ATTENTION, GRU, LENGTHS, Reach
from pages.learn.why_attention.reading import READ_TOKENS
from pages.learn.why_attention.timing import FEW, MANY, Times
from ui.charts.style import SERIES, VERMILLION, config, decades
from ui.widgets.head_picture import isolated

if TYPE_CHECKING:
    from attention_core.costs.stopwatch import Samples

MAX_WORDS_ON_AXIS = 20


def reach_chart(found: Reach, ink: str) -> dict[str, Any]:
    """The share of every position, a line for each network, on a logarithmic axis."""
    few = len(found.words) <= MAX_WORDS_ON_AXIS
    rows = [
        {
            "token": f"{place} {isolated(word[:12])}" if few else str(place),
            "word": word,
            "network": name,
            "share": float(shares[place]),
        }
        for name, shares in ((GRU, found.gru_share), (ATTENTION, found.attention_share))
        for place, word in enumerate(found.words)
    ]
    x = {
        "field": "token",
        "type": "ordinal",
        "sort": None,
        "title": "position of the word (the last one is read)",
        "axis": {"labelAngle": -60 if few else 0, "labelOverlap": not few},
    }
    tooltip = [{"field": "token"}, {"field": "word"}, {"field": "network"}]
    return _shares(rows, x, tooltip, ink)


def growth_chart(found: pd.DataFrame, ink: str) -> dict[str, Any]:
    """The share of token 0 over the length of the sentence."""
    rows = [
        {"tokens": int(row["tokens"]), "network": name, "share": float(row[name])}
        for name in (GRU, ATTENTION)
        for _, row in found.iterrows()
    ]
    x = {
        "field": "tokens",
        "type": "quantitative",
        "title": "tokens in the sentence",
        "scale": {"type": "log", "base": 2, "domain": [LENGTHS[0], LENGTHS[-1]]},
        "axis": {"values": LENGTHS, "format": "d"},
    }
    return _shares(rows, x, [{"field": "tokens"}, {"field": "network"}], ink)


def reading_chart(found: np.ndarray, ink: str) -> dict[str, Any]:
    """Bars: how much of each token is read back."""
    return {
        "height": 260,
        "data": {
            "values": [{"place": place, "found": float(part)} for place, part in enumerate(found)]
        },
        "mark": {"type": "bar", "color": VERMILLION},
        "encoding": {
            "x": {
                "field": "place",
                "type": "ordinal",
                "title": f"position of the token, 0 to {READ_TOKENS - 1}",
                "axis": {"labelAngle": 0},
            },
            "y": {
                "field": "found",
                "type": "quantitative",
                "title": "part that is read back",
                "scale": {"domain": [0, 1], "clamp": True},
            },
            "tooltip": [{"field": "place"}, {"field": "found", "format": ".3f"}],
        },
        "config": config(ink, labelLimit=300),
    }


def times_chart(found: Times, ink: str) -> dict[str, Any]:
    """Milliseconds over the length, both axes logarithmic, with the range of the repeats."""
    rows = [
        {
            "tokens": length,
            "run": name,
            "ms": samples.median * 1e3,
            "low": samples.low * 1e3,
            "high": samples.high * 1e3,
        }
        for name, by_length in found.seconds.items()
        for length, samples in by_length.items()
    ]
    y = {
        "type": "quantitative",
        "title": "milliseconds (median and range)",
        **decades(
            [end for all_ in found.seconds.values() for s in all_.values() for end in _range_ms(s)]
        ),
    }
    common = {
        "x": {
            "field": "tokens",
            "type": "quantitative",
            "title": "tokens in the sentence",
            "scale": {"type": "log", "base": 2, "domain": [FEW[0], MANY[-1]]},
            "axis": {"values": list(MANY), "format": "d"},
        },
        "color": _colour("run", list(found.seconds)),
        "tooltip": [
            {"field": "run"},
            {"field": "tokens"},
            *({"field": name, "format": ".3~g"} for name in ("ms", "low", "high")),
        ],
    }
    return {
        "height": 320,
        "data": {"values": rows},
        "encoding": common,
        "layer": [
            {
                "mark": {"type": "line", "point": {"filled": True, "size": 45}},
                "encoding": {"y": {**y, "field": "ms"}},
            },
            {"mark": "rule", "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}}},
        ],
        "config": config(ink, labelLimit=300),
    }


def _shares(
    rows: list[dict[str, Any]], x: dict[str, Any], tooltip: list[dict[str, Any]], ink: str
) -> dict[str, Any]:
    return {
        "height": 320,
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "rule", "strokeDash": [3, 3], "color": ink},
                "data": {"values": [{"share": 1}]},
                "encoding": {"y": {"field": "share", "type": "quantitative"}},
            },
            {
                "mark": {"type": "line", "point": {"filled": True, "size": 45}},
                "encoding": {
                    "x": x,
                    "y": {
                        "field": "share",
                        "type": "quantitative",
                        "title": "influence, × an equal share",
                        **decades([row["share"] for row in rows]),
                    },
                    "color": _colour("network", [GRU, ATTENTION]),
                    "tooltip": [*tooltip, {"field": "share", "format": ".4~g"}],
                },
            },
        ],
        "config": config(ink, labelLimit=300),
    }


def _colour(field: str, names: list[str]) -> dict[str, Any]:
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {"domain": names, "range": SERIES[: len(names)]},
        "legend": {"orient": "top", "symbolType": "stroke", "symbolStrokeWidth": 3, "columns": 2},
    }


def _range_ms(samples: Samples) -> tuple[float, float]:
    return samples.low * 1e3, samples.high * 1e3
