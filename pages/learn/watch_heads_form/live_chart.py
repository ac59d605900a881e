"""Charts of a run's losses and scores, redrawn twice a second during training.

These are Vega-Lite dictionaries instead of Altair charts, because Altair validates every new chart
against its schema, and that slows down the training.
"""

from __future__ import annotations

from typing import Any

from pages.learn.watch_heads_form.recording import BLIND_GUESS, TrainingHistory
from serving.heads import HeadId
from serving.limits import MAX_FORMING_STEPS
from ui.charts.style import BLUE, GREEN, GREY, PURPLE, VERMILLION

TRAINED, UNSEEN = "trained distances", "unseen distances"
PREVIOUS, INDUCTION = "L0: previous token", "L1: induction"
LOSS_HEIGHT, SCORE_HEIGHT = 215, 225  # heights of the whole charts, including axes


def losses(recording: TrainingHistory) -> dict[str, Any]:
    """Chart both losses by step, the loss of a blind guess, and the step of the drop."""
    rows = [
        {"step": m.step, "distances": name, "value": round(loss, 4)}
        for m in recording.moments
        for name, loss in ((TRAINED, m.loss_trained), (UNSEEN, m.loss_unseen))
    ]
    lines = _lines(rows, "distances", "loss", {TRAINED: BLUE, UNSEEN: VERMILLION}, [0, BLIND_GUESS])
    blind = {
        "data": {"values": [{"value": BLIND_GUESS}]},
        "mark": {"type": "rule", "color": GREY, "strokeDash": [2, 3], "aria": False},
        "encoding": {"y": {"field": "value", "type": "quantitative"}},
    }
    return {"height": LOSS_HEIGHT, "layer": [blind, *_drop(recording), lines]}


def scores(recording: TrainingHistory) -> dict[str, Any]:
    """Chart previous-token scores of layer 0 and induction scores of layer 1, one line per head."""
    rows = [
        {"step": m.step, "score": name, "head": str(HeadId(layer, head)), "value": round(score, 4)}
        for m in recording.moments
        for layer, (name, values) in enumerate(((PREVIOUS, m.previous), (INDUCTION, m.induction)))
        for head, score in enumerate(values[layer].tolist())
    ]
    lines = _lines(rows, "score", "score", {PREVIOUS: GREEN, INDUCTION: PURPLE}, [0, 1])
    lines["encoding"]["detail"] = {"field": "head", "type": "nominal"}
    lines["encoding"]["tooltip"].insert(1, {"field": "head", "title": "head"})
    return {"height": SCORE_HEIGHT, "layer": [*_drop(recording), lines]}


def _lines(
    rows: list[dict[str, Any]], series: str, title: str, colours: dict[str, str], span: list[float]
) -> dict[str, Any]:
    """Lines on an axis for a whole run, so that the scale doesn't change during training."""
    return {
        "data": {"values": rows},
        # hide an empty chart from screen readers
        "mark": {"type": "line", "strokeWidth": 1.5, "aria": bool(rows)},
        "encoding": {
            "x": {
                "field": "step", "type": "quantitative", "title": "training step",
                "scale": {"domain": [0, MAX_FORMING_STEPS], "nice": False},
            },
            "y": {
                "field": "value", "type": "quantitative", "title": title,
                "scale": {"domainMin": span[0], "nice": True},
                "axis": {"tickCount": 4},
            } | ({"scale": {"domain": span}} if span == [0, 1] else {}),
            "color": {
                "field": series, "type": "nominal", "title": None,
                "scale": {"domain": list(colours), "range": list(colours.values())},
                "legend": {"orient": "top"},
            },
            "tooltip": [
                {"field": series, "title": series},
                {"field": "step", "title": "training step"},
                {"field": "value", "title": title, "format": ".3f"},
            ],
        },
    }  # fmt: skip


def _drop(recording: TrainingHistory) -> list[dict[str, Any]]:
    """A vertical line at the step of the drop, if there was one."""
    drop = recording.drop
    if drop is None:
        return []
    return [
        {
            "data": {"values": [{"step": drop.step}]},
            "mark": {"type": "rule", "strokeWidth": 2, "strokeDash": [5, 3], "color": GREY},
            "encoding": {"x": {"field": "step", "type": "quantitative"}},
        }
    ]
