"""The charts of the page "Variants": numbers in, Vega-Lite dictionaries out."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pages.kv_cache.variants.looks import Form, Look
from ui.charts.style import BLUE, PURPLE, SERIES, VERMILLION, config

PICTURE_HEIGHT = 330
MOST_ROWS = 96  # tokens of a thumbnail
ROW = 34  # pixels of a bar

# as in the site's maps of signed numbers
_BELOW, _ZERO, _ABOVE = np.array([[0, 114, 178], [247, 247, 247], [213, 94, 0]], dtype=np.float32)


def sharing(look: Look, form: Form, ink: str) -> dict[str, Any]:
    """Query heads in a row, lines to what each of them reads, and that as a picture.

    The thumbnails are the tensors in the cache of layer 0: tokens down, numbers across.
    """
    n_heads = look.n_heads
    largest = max(float(np.abs(part.values).max()) for part in form.parts)
    latent = len(form.parts[0].read_by) == n_heads and len(form.parts) == 2
    places = (
        [0.36, 0.82]
        if latent
        else [(p.read_by[0] + p.read_by[-1] + 1) / 2 / n_heads for p in form.parts]
    )
    across = [0.5, 0.12] if latent else [0.82 / n_heads] * len(form.parts)
    colours = [SERIES[i % len(SERIES)] for i in range(len(form.parts))]
    links: list[dict[str, Any]] = []
    boxes: list[dict[str, Any]] = []
    for number, (part, place, wide) in enumerate(zip(form.parts, places, across, strict=True)):
        about = {
            "name": part.name,
            "shape": f"{part.values.shape[0]} tokens × {part.values.shape[1]}",
            "read by": "all query heads" if latent else ", ".join(map(str, part.read_by)),
            "mean length": float(np.linalg.norm(part.values, axis=-1).mean()),
        }
        boxes.append(
            {
                **about,
                "x": place,
                "y": 0.6,
                "wide": wide,
                "image": _png(part.values, largest),
                "label": part.name if latent else str(number),
            }
        )
        links += [
            {
                "head": h,
                "from": (h + 0.5) / n_heads,
                "top": 0.9,
                "to": place,
                "bottom": 0.62,
                "colour": colours[number],
                "reads": part.name,
            }
            for h in part.read_by
        ]
    unit = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": None}
    x, y = {"field": "x", **unit}, {"field": "y", **unit}
    at = {"x": {"field": "from", **unit}, "y": {"field": "top", **unit}}
    heads = [{**row, "reads": "latent and rotary key", "colour": ink} for row in links[:n_heads]]
    heads = heads if latent else links
    colour = {"field": "colour", "type": "nominal", "scale": None}
    text = {"type": "text", "color": ink, "fontSize": 13}
    return {
        "height": PICTURE_HEIGHT,
        "data": {"values": boxes},
        "layer": [
            {
                "data": {"values": links},
                "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.9},
                "encoding": {**at, "x2": {"field": "to"}, "y2": {"field": "bottom"},
                             "color": colour},
            },
            {
                "data": {"values": heads},
                "mark": {"type": "point", "filled": True, "size": 130, "opacity": 1},
                "encoding": {
                    **at, "color": colour,
                    "tooltip": [{"field": "head", "title": "query head"}, {"field": "reads"}],
                },
            },
            {
                "data": {"values": heads},
                "mark": {**text, "dy": -17},
                "encoding": {**at, "text": {"field": "head", "type": "nominal"}},
            },
            {
                "mark": {
                    "type": "image", "aspect": False, "height": PICTURE_HEIGHT * 0.5,
                    "width": {"expr": "datum.wide * width"}, "baseline": "top",
                },
                "encoding": {
                    "x": x, "y": y, "url": {"field": "image", "type": "nominal"},
                    "tooltip": [{"field": "name"}, {"field": "shape"}, {"field": "read by"},
                                {"field": "mean length", "format": ".4f"}],
                },
            },
            {
                "mark": {**text, "dy": PICTURE_HEIGHT * 0.5 + 12},
                "encoding": {"x": x, "y": y, "text": {"field": "label", "type": "nominal"}},
            },
        ],
        "config": config(ink),
    }  # fmt: skip


def _png(values: np.ndarray, largest: float) -> str:
    """A matrix as the address of a picture: blue below 0, orange above."""
    from PIL import Image

    share = np.clip(values[:MOST_ROWS] / (largest or 1.0), -1, 1)[..., None]
    far = np.where(share < 0, _BELOW, _ABOVE)
    pixels = _ZERO + (far - _ZERO) * np.sqrt(np.abs(share))
    file = io.BytesIO()
    # whole pixels, enlarged: a browser would blur a small picture
    image = Image.fromarray(pixels.astype(np.uint8))
    image.resize((image.width * 2, image.height * 2), Image.Resampling.NEAREST).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def cache_sizes(look: Look, chosen: str, ink: str) -> dict[str, Any]:
    """A bar for the measured bytes of every form, and a mark where the formula puts its end."""
    rows: list[dict[str, Any]] = [
        {
            "form": form.name,
            "kB": form.measured / 1e3,
            "formula": form.formula / 1e3,
            "bytes": form.measured,
            "colour": BLUE if form.name == chosen else PURPLE,
            "label": f"{form.measured / 1e3:,.0f} kB",
        }
        for form in look.forms.values()
    ]
    y = {
        "field": "form", "type": "nominal", "sort": list(look.forms), "title": None,
        "axis": {"labelLimit": 160, "labelOverlap": False},
    }  # fmt: skip
    most = max(row["kB"] for row in rows) * 1.35
    x = {
        "type": "quantitative", "title": "kB of cache after the prompt, all layers",
        "scale": {"domain": [0, most], "nice": False}, "axis": {"tickCount": 4, "labelBound": True},
    }  # fmt: skip
    tooltip = [
        {"field": "form"},
        {"field": "bytes", "title": "measured, bytes", "format": ",d"},
        {"field": "formula", "title": "formula, kB", "format": ",.3f"},
    ]
    return {
        "height": ROW * len(rows) + 40,
        "data": {"values": rows},
        "encoding": {"y": y},
        "layer": [
            {
                "mark": {"type": "bar", "height": {"band": 0.7}},
                "encoding": {
                    "x": {"field": "kB", **x}, "tooltip": tooltip,
                    "color": {"field": "colour", "type": "nominal", "scale": None},
                },
            },
            {
                "mark": {"type": "tick", "thickness": 3, "color": ink, "height": {"band": 0.9}},
                "encoding": {"x": {"field": "formula", **x}, "tooltip": tooltip},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 7, "color": ink},
                "encoding": {"x": {"field": "kB", **x}, "text": {"field": "label"}},
            },
        ],
        "config": config(ink),
    }  # fmt: skip


def speeds(
    counted: Mapping[str, float], ratios: Mapping[str, tuple[float, float, float]], ink: str
) -> dict[str, Any]:
    """A decode step over that of MHA: operations as diamonds, time as median and middle half.

    counted: of all forms, measured or not: the chart keeps its size. ratios: median, then the first
    and the third quartile; no reader is told of them while there are none.
    """
    forms = list(counted)
    rows: list[dict[str, Any]] = [
        {"form": name, "ratio": middle, "low": low, "high": high}
        for name, (middle, low, high) in ratios.items()
    ]
    values = [*counted.values(), *(row[end] for row in rows for end in ("low", "high"))]
    low, high = min(0.5, *values) / 1.1, max(2.0, *values) * 1.1
    y = {
        "field": "form", "type": "nominal", "sort": forms, "title": None,
        "scale": {"type": "band", "domain": forms},
        "axis": {"labelLimit": 160, "labelOverlap": False, "labelFlush": False},
    }  # fmt: skip
    marks = [m for m in (0.1, 0.2, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 50) if low < m < high]
    x = {
        "type": "quantitative", "title": "a decode step, MHA = 1 (logarithmic)",
        "scale": {"type": "log", "domain": [low, high], "nice": False},
        "axis": {"values": marks, "format": "~g"},
    }  # fmt: skip
    tooltip = [
        {"field": "form"},
        *({"field": name, "format": ".3f"} for name in ("ratio", "low", "high")),
    ]
    return {
        "height": ROW * len(forms) + 40,
        "data": {"values": rows},
        "layer": [
            {
                "data": {"values": [{"one": 1.0}]},
                "mark": {"type": "rule", "color": ink, "strokeDash": [4, 4]},
                "encoding": {"x": {"field": "one", **x}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 4, "color": BLUE, "opacity": 0.55,
                         "aria": bool(rows)},
                "encoding": {"y": y, "x": {"field": "low", **x}, "x2": {"field": "high"},
                             "tooltip": tooltip},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 110, "color": BLUE,
                         "opacity": 1, "aria": bool(rows)},
                "encoding": {"y": y, "x": {"field": "ratio", **x}, "tooltip": tooltip},
            },
            {
                "data": {"values": [{"form": n, "operations": c} for n, c in counted.items()]},
                "mark": {"type": "point", "shape": "diamond", "size": 90, "color": VERMILLION,
                         "strokeWidth": 2, "opacity": 1},
                "encoding": {"y": y, "x": {"field": "operations", **x},
                             "tooltip": [{"field": "form"},
                                         {"field": "operations", "format": ".3f"}]},
            },
        ],
        "config": config(ink),
    }  # fmt: skip


HIDDEN, ATTENTION = "last hidden states: relative difference", "attention: share that moved"


def drifts(rows: Sequence[Mapping[str, Any]], ink: str) -> dict[str, Any]:
    """What pooling changes, by the number of key/value heads that are left.

    rows: "heads", "what" (HIDDEN or ATTENTION), "value", and "low" and "high" over the tokens or
    the heads of all layers.
    """
    order = sorted({int(row["heads"]) for row in rows}, reverse=True)
    x = {
        "field": "heads", "type": "ordinal", "sort": order, "title": "key/value heads left",
        "axis": {"labelAngle": 0},
    }  # fmt: skip
    colour = {
        "field": "what", "type": "nominal", "title": None,
        "scale": {"domain": [HIDDEN, ATTENTION], "range": [VERMILLION, BLUE]},
        "legend": {"orient": "top", "columns": 1, "labelLimit": 320, "symbolOpacity": 1},
    }  # fmt: skip
    shift = {"field": "what", "scale": {"domain": [HIDDEN, ATTENTION]}}
    y = {"field": "value", "type": "quantitative", "title": "mean, and the range",
         "scale": {"zero": True}}  # fmt: skip
    tooltip = [
        {"field": "what"},
        {"field": "heads", "title": "key/value heads"},
        *({"field": name, "format": ".4f"} for name in ("value", "low", "high")),
    ]
    return {
        "height": 300,
        "data": {"values": list(rows)},
        "encoding": {"x": x, "xOffset": shift, "color": colour, "tooltip": tooltip},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.5},
                "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 100, "opacity": 1},
                "encoding": {
                    "y": y,
                    "shape": {**colour, "scale": {"domain": [HIDDEN, ATTENTION],
                                                  "range": ["circle", "diamond"]}},
                },
            },
        ],
        "config": config(ink),
    }  # fmt: skip
