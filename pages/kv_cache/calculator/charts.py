"""The charts of the page "Calculator": settings in, Vega-Lite dictionaries out."""

from __future__ import annotations

from typing import Any

from pages.kv_cache.calculator.setting import CONTEXTS, GB, Setting, everything, gpt3_family
from ui.charts.style import BLUE, GREEN, PURPLE, VERMILLION, config, decades

REAL, PLAIN = "as it is", "as plain multi-head"
CACHE, WEIGHTS, LEFT = "KV cache", "weights", "left by the weights"
ROW = 24  # pixels of a model's row, the axis below included


def _gigabytes(values: list[float], field: str = "GB") -> dict[str, Any]:
    scale = decades(values)
    return {
        "field": field, "type": "quantitative", "title": "GB, logarithmic", "scale": scale["scale"],
        "axis": scale["axis"],
    }  # fmt: skip


def _colour(names: list[str], colours: list[str], **more: Any) -> dict[str, Any]:
    return {
        "field": "what", "type": "nominal", "title": None,
        "scale": {"domain": names, "range": colours},
        "legend": {"orient": "top", "columns": 2, "labelLimit": 260, **more},
    }  # fmt: skip


_TOOLTIP = [{"field": "what"}, {"field": "GB", "format": ",.4~g"}]


def context_chart(chosen: Setting, ink: str) -> dict[str, Any]:
    """The cache against the context, both logarithmic, beside the weights and what they leave."""
    forms = {REAL: chosen.published, PLAIN: chosen.published.as_multi_head()}
    if forms[PLAIN] == forms[REAL]:
        del forms[PLAIN]
    rows: list[dict[str, Any]] = [
        {"what": name, "tokens": n_tokens, "GB": chosen.cache(model, n_tokens) / GB}
        for name, model in forms.items()
        for n_tokens in CONTEXTS
    ]
    levels: list[dict[str, Any]] = [{"what": WEIGHTS, "GB": chosen.weights / GB}]
    if chosen.free > 0:
        levels.append({"what": LEFT, "GB": chosen.free / GB})
    now = [{"what": "chosen", "tokens": chosen.n_tokens, "GB": chosen.cache() / GB}]
    names = [*forms, *(level["what"] for level in levels)]
    colours = {REAL: BLUE, PLAIN: PURPLE, WEIGHTS: VERMILLION, LEFT: GREEN}
    y = _gigabytes([row["GB"] for row in (*rows, *levels)])
    x = {
        "field": "tokens", "type": "quantitative", "title": "tokens of each sequence, logarithmic",
        "scale": {"type": "log", "base": 2, "domain": [CONTEXTS[0], CONTEXTS[-1]], "nice": False},
        "axis": {"values": [2**power for power in range(7, 21, 3)], "format": ",d"},
    }  # fmt: skip
    colour = _colour(names, [colours[name] for name in names])
    dash = {
        "field": "what", "type": "nominal", "legend": None,
        "scale": {"domain": names, "range": [
            {REAL: [1, 0], PLAIN: [2, 3], WEIGHTS: [8, 4], LEFT: [8, 3, 2, 3]}[name]
            for name in names
        ]},
    }  # fmt: skip
    tokens = {"field": "tokens", "format": ",d"}
    return {
        "height": 380,
        "encoding": {"y": y},
        "layer": [
            {
                "data": {"values": rows},
                "mark": {"type": "line", "strokeWidth": 2.5},
                "encoding": {"x": x, "color": colour, "strokeDash": dash,
                             "tooltip": [*_TOOLTIP, tokens]},
            },
            {
                "data": {"values": levels},
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"color": colour, "strokeDash": dash, "tooltip": _TOOLTIP},
            },
            {
                "data": {"values": now},
                "mark": {"type": "point", "filled": True, "size": 110, "color": ink, "opacity": 1},
                "encoding": {"x": x, "tooltip": [*_TOOLTIP, tokens]},
            },
        ],
        "config": config(ink),
    }  # fmt: skip


def models_chart(chosen: Setting, ink: str) -> dict[str, Any]:
    """One row a model: its cache, and where plain multi-head attention would put it.

    Points, not bars: a logarithmic axis has no zero for bars to stand on.
    """
    table = everything(chosen)
    rows = []
    for entry in table.to_dict("records"):
        for what, column in (
            (PLAIN, "as plain MHA, bytes"),
            (REAL, "cache, bytes"),
            (WEIGHTS, "weights, bytes"),
        ):
            rows.append(
                {
                    "model": entry["model"],
                    "what": what,
                    "GB": entry[column] / GB,
                    "form": entry["form"],
                    "context": "within its context"
                    if entry["within context"]
                    else "longer than its context",
                }
            )
    x = _gigabytes([row["GB"] for row in rows])
    y = {
        "field": "model", "type": "nominal", "sort": list(table["model"]), "title": None,
        "axis": {"labelLimit": 200, "labelOverlap": False, "labelFlush": False, "labelFontWeight": {
            "condition": {"test": f"datum.value === '{_quoted(chosen)}'", "value": "bold"},
            "value": "normal"}, "grid": True, "gridOpacity": 0.3},
    }  # fmt: skip
    names, colours = [REAL, PLAIN, WEIGHTS], [BLUE, PURPLE, VERMILLION]
    return {
        "height": ROW * len(table),
        "data": {"values": rows},
        "encoding": {"y": y},
        "layer": [
            {
                "transform": [
                    {"filter": f"datum.what !== '{WEIGHTS}'"},
                    {"pivot": "what", "value": "GB", "groupby": ["model"]},
                ],
                "mark": {"type": "rule", "color": PURPLE, "strokeWidth": 1.5},
                "encoding": {"x": {**x, "field": REAL}, "x2": {"field": PLAIN}},
            },
            {
                "mark": {"type": "point", "size": 75, "strokeWidth": 2},
                "encoding": {
                    "x": x,
                    "color": _colour(names, colours),
                    "shape": {
                        **_colour(names, ["circle", "diamond", "cross"]),
                    },
                    "fill": {
                        "condition": {"test": f"datum.what === '{REAL}' && "
                                      "datum.context === 'within its context'", "value": BLUE},
                        "value": "transparent",
                    },
                    "tooltip": [{"field": "model"}, {"field": "form"}, *_TOOLTIP,
                                {"field": "context"}],
                },
            },
        ],
        "config": config(ink),
    }  # fmt: skip


def _quoted(chosen: Setting) -> str:
    return chosen.model.name.replace("\\", "\\\\").replace("'", "\\'")


def family_chart(chosen: Setting, ink: str) -> dict[str, Any]:
    """GPT-3's sizes: weights and cache, one point a model."""
    table = gpt3_family(chosen).table
    rows = [
        {
            "model": entry["model"],
            "what": what,
            "GB": entry[column] / GB,
            "parameters": entry["parameters"],
        }
        for what, column in ((WEIGHTS, "weights, bytes"), (CACHE, "cache, bytes"))
        for entry in table.to_dict("records")
    ]
    return {
        "height": 380,
        "data": {"values": rows},
        "mark": {"type": "line", "point": {"size": 70, "filled": True}, "strokeWidth": 2.5},
        "encoding": {
            "x": {"field": "model", "type": "nominal", "sort": list(table["model"]),
                  "title": "GPT-3", "axis": {"labelAngle": -40, "labelOverlap": False}},
            "y": _gigabytes([row["GB"] for row in rows]),
            "color": _colour([WEIGHTS, CACHE], [VERMILLION, BLUE], symbolStrokeWidth=0),
            "strokeDash": {"field": "what", "type": "nominal", "legend": None,
                           "scale": {"domain": [WEIGHTS, CACHE], "range": [[8, 4], [1, 0]]}},
            "tooltip": [{"field": "model"}, *_TOOLTIP, {"field": "parameters", "format": ",d"}],
        },
        "config": config(ink),
    }  # fmt: skip


def charts(chosen: Setting, ink: str, paper: str) -> dict[str, dict[str, Any]]:
    """All charts of the page by the names of their files; they leave the background free."""
    return {
        "cache_by_context": context_chart(chosen, ink),
        "all_models": models_chart(chosen, ink),
        "gpt3_family": family_chart(chosen, ink),
    }
