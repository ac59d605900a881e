"""One word looking at two others, in every head of a model: the search behind the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pretrained import Tokens
from pretrained.tokenization.alignment import group_labels, words
from serving.cache import kept
from serving.limits import PAIR_CACHE_BYTES
from serving.runs import Run
from ui.charts.style import BLUE, VERMILLION, config
from ui.widgets import controls

MARGIN = 0.05  # from this difference on a head counts as preferring one of the two words


@dataclass(frozen=True)
class Question:
    """A sentence, the word that looks, and two words it might look at."""

    text: str
    query: str
    key: str
    other: str


# What the lectures tell about these sentences, by the short names of their buttons.
QUESTIONS = {
    "it: animal or street?": Question(controls.ANIMAL, "it", "animal", "street"),
    "it: animal or tired?": Question(controls.ANIMAL, "it", "animal", "tired"),
    "brush: artist or woman?": Question(controls.ARTIST, "brush", "artist", "woman"),
    "woman: brush or portrait?": Question(controls.ARTIST, "woman", "brush", "portrait"),
    "regulate: government or speech?": Question(
        controls.GOVERNMENT, "regulate", "government", "speech"
    ),
}


@dataclass(frozen=True)
class Unit:
    """A word with its tokens, or a token that belongs to no word, such as [CLS].

    `label` is unique among the units of a text.
    """

    label: str
    tokens: tuple[int, ...]
    is_word: bool


@dataclass(frozen=True)
class Search:
    """What the heads give two words, each array (layers, heads), and the yardstick for it.

    `rank` is the place of the first word among all units of the row. `others` holds, for every
    other pair of words, the largest weight that any head gives it. `sees` and `sees_other` are
    False where the looking word comes before the word looked at and may not look ahead.
    """

    query: Unit
    key: Unit
    other: Unit
    weights: np.ndarray
    other_weights: np.ndarray
    rank: np.ndarray
    contributions: np.ndarray
    preference: np.ndarray
    others: np.ndarray
    sees: bool
    sees_other: bool

    @property
    def best(self) -> tuple[int, int]:
        """Layer and head of the largest weight."""
        layer, head = np.unravel_index(int(self.weights.argmax()), self.weights.shape)
        return int(layer), int(head)

    @property
    def beaten(self) -> int:
        """How many of the other pairs have a smaller largest weight."""
        return int((self.others < self.weights.max()).sum())


def units(tokens: Tokens) -> tuple[Unit, ...]:
    """The words of a text, and what belongs to none: each token is in exactly one unit."""
    groups = words(tokens)
    return tuple(
        Unit(label, group, any(_holds_text(tokens, token) for token in group))
        for label, group in zip(group_labels(tokens, groups), groups, strict=True)
    )


def _holds_text(tokens: Tokens, token: int) -> bool:
    start, end = tokens.spans[token]
    return not tokens.special[token] and bool(tokens.text[start:end].strip())


def defaults(text: str, labels: list[str]) -> tuple[int, int, int]:
    """Which words to begin with: those of a lecture's question about this text, if there is one.

    Else the last word looks, at the first one and at the one before itself.
    """
    for question in QUESTIONS.values():
        asked = (question.query, question.key, question.other)
        if question.text == text and set(asked) <= set(labels):
            query, key, other = map(labels.index, asked)
            return query, key, other
    last = len(labels) - 1
    return last, 0, last - 1


def search(run: Run, found: tuple[Unit, ...], query: int, key: int, other: int) -> Search:
    """What unit `query` gives `key` and `other` in every head; the numbers count `found`."""
    import torch

    from attention_core.experiments.compare.contributions import contributions
    from attention_core.experiments.compare.word_pairs import (
        other_pairs,
        preference,
        rank_of_unit,
        taken_from_units,
    )

    groups = [unit.tokens for unit in found]
    # the rows of the looking word are all that is needed: (layers, heads, its tokens, S)
    rows = run.tensors.weights[:, :, list(groups[query])]
    lengths = contributions(rows, run.tensors.value_norms)
    row_numbers = range(rows.shape[2])
    taken = taken_from_units(rows, row_numbers, groups)
    ordinary = torch.tensor([unit.is_word for unit in found])
    largest = torch.tensor(_largest_of(run, found))
    return Search(
        query=found[query],
        key=found[key],
        other=found[other],
        weights=taken[..., key].numpy(),
        other_weights=taken[..., other].numpy(),
        rank=rank_of_unit(taken, key).numpy(),
        contributions=taken_from_units(lengths, row_numbers, [groups[key]])[..., 0].numpy(),
        preference=preference(taken[..., key], taken[..., other], margin=MARGIN).numpy(),
        others=other_pairs(largest, ordinary, (query, key), causal=run.causal).numpy(),
        sees=not run.causal or key <= query,
        sees_other=not run.causal or other <= query,
    )


@kept(PAIR_CACHE_BYTES, key=lambda run, found: run.key)
def _largest_of(run: Run, found: tuple[Unit, ...]) -> np.ndarray:
    """The largest weight of any head for every pair of units, kept for each text."""
    from attention_core.experiments.compare.word_pairs import strongest_head

    heads = run.tensors.weights.flatten(0, 1)
    array: np.ndarray = strongest_head(heads, [unit.tokens for unit in found]).numpy()
    return array


def table(result: Search) -> pd.DataFrame:
    """Every head, the largest weight on A first."""
    layers, heads = np.indices(result.weights.shape)
    frame = pd.DataFrame(
        {
            "layer": layers.ravel(),
            "head": heads.ravel(),
            "weight on A": result.weights.ravel(),
            "place of A in its row": result.rank.ravel(),
            "contribution of A": result.contributions.ravel(),
            "weight on B": result.other_weights.ravel(),
            "A minus B": (result.weights - result.other_weights).ravel(),
        }
    )
    return frame.sort_values("weight on A", ascending=False, kind="stable", ignore_index=True)


def charts(result: Search, ink: str, paper: str) -> dict[str, dict[str, Any]]:
    """All charts of the page, in these colours of text and background."""
    largest = float(max(result.weights.max(), result.other_weights.max(), 1e-6))
    asks = result.query.label
    found = {
        f"heads_{letter}": grid(
            values, f"{letter}: {asks} → {unit.label}", largest=largest, ink=ink, paper=paper
        )
        for letter, unit, values in (
            ("A", result.key, result.weights),
            ("B", result.other, result.other_weights),
        )
    }
    return found | {
        "a_or_b": against(result, largest=largest, ink=ink),
        "yardstick": yardstick(result, ink),
    }


def grid(values: np.ndarray, name: str, *, largest: float, ink: str, paper: str) -> dict[str, Any]:
    """Layers down, heads across, one cell a head; the three largest carry their place."""
    order = np.argsort(-values, axis=None, kind="stable")
    place = {int(index): str(number) for number, index in enumerate(order[:3], start=1)}
    n_heads = values.shape[1]
    rows = [
        {
            "layer": index // n_heads,
            "head": index % n_heads,
            "weight": float(value),
            "place": place.get(index, "") if value > 0 else "",
        }
        for index, value in enumerate(values.ravel())
    ]
    axis = {"labelAngle": 0, "labelOverlap": True, "ticks": False, "domain": False}
    return {
        "title": {"text": name, "color": ink, "anchor": "start", "fontSize": 14},
        "description": f"{name}: the weight in every layer and head",
        "height": {"step": 16 if len(values) > 12 else 30},
        "data": {"values": rows},
        "encoding": {
            "x": {"field": "head", "type": "ordinal", "axis": axis},
            "y": {"field": "layer", "type": "ordinal", "axis": axis},
            "tooltip": [
                {"field": "layer"},
                {"field": "head"},
                {"field": "weight", "format": ".5f"},
            ],
        },
        "layer": [
            {
                "mark": {"type": "rect", "stroke": paper, "strokeWidth": 1},
                "encoding": {
                    "color": {
                        "field": "weight",
                        "type": "quantitative",
                        "scale": {"domain": [0, largest]},
                        "legend": {
                            "orient": "bottom",
                            "title": "weight",
                            "gradientLength": 180,
                            "values": [0, largest / 2, largest],
                            "format": ".3f",
                        },
                    }
                },
            },
            {
                "mark": {"type": "text", "fontWeight": "bold", "fontSize": 12},
                "encoding": {
                    "text": {"field": "place"},
                    "color": {
                        # the scale runs away from the background: large weights need its colour
                        "condition": {"test": f"datum.weight > {largest / 2}", "value": paper},
                        "value": ink,
                    },
                },
            },
        ],
        "config": config(ink),
    }


def against(result: Search, *, largest: float, ink: str) -> dict[str, Any]:
    """Every head as a point: its weight on A across, on B upwards, and where both are alike."""
    names = {1: "more on A", 0: "alike", -1: "more on B"}
    rows = [
        {**row, "prefers": names[int(preference)]}
        for row, preference in zip(
            pd.DataFrame(
                {
                    "layer": np.indices(result.weights.shape)[0].ravel(),
                    "head": np.indices(result.weights.shape)[1].ravel(),
                    "A": result.weights.ravel().astype(float),
                    "B": result.other_weights.ravel().astype(float),
                }
            ).to_dict("records"),
            result.preference.ravel(),
            strict=True,
        )
    ]
    scale = {"domain": [0, largest], "nice": True}
    kinds = {"domain": list(names.values())}
    return {
        "height": 340,
        "description": "Each head as a point: its weight on A and on B",
        "layer": [
            {
                "data": {"values": [{"A": 0, "B": 0}, {"A": largest, "B": largest}]},
                "mark": {"type": "line", "color": ink, "strokeWidth": 1, "strokeDash": [4, 4]},
                "encoding": {
                    "x": {"field": "A", "type": "quantitative"},
                    "y": {"field": "B", "type": "quantitative"},
                },
            },
            {
                "data": {"values": rows},
                "mark": {"type": "point", "filled": True, "opacity": 0.9, "size": 55},
                "encoding": {
                    "x": {
                        "field": "A",
                        "type": "quantitative",
                        "title": "weight on A",
                        "scale": scale,
                    },
                    "y": {
                        "field": "B",
                        "type": "quantitative",
                        "title": "weight on B",
                        "scale": scale,
                    },
                    "color": {
                        "field": "prefers",
                        "type": "nominal",
                        "title": None,
                        "scale": {**kinds, "range": [BLUE, "#808890", VERMILLION]},
                        "legend": {"orient": "top"},
                    },
                    "shape": {
                        "field": "prefers",
                        "type": "nominal",
                        "title": None,
                        "scale": {**kinds, "range": ["circle", "square", "triangle-up"]},
                    },
                    "tooltip": [
                        {"field": "layer"},
                        {"field": "head"},
                        {"field": "A", "title": "weight on A", "format": ".5f"},
                        {"field": "B", "title": "weight on B", "format": ".5f"},
                    ],
                },
            },
        ],
        "config": config(ink),
    }


def yardstick(result: Search, ink: str) -> dict[str, Any]:
    """How large the largest weight is for all other pairs, in steps of 0.05, and where A is."""
    counts, edges = np.histogram(result.others, bins=20, range=(0.0, 1.0))
    rows = [
        {"from": float(low), "to": float(high), "pairs": int(count)}
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]
    mine = float(result.weights.max())
    beside = {"align": "right", "dx": -8} if mine > 0.1 else {"align": "left", "dx": 8}
    x = {
        "type": "quantitative",
        "title": "largest weight over all heads",
        "scale": {"domain": [0, 1]},
    }
    return {
        "height": 340,
        "description": "Largest weight over all heads, for every other pair of words",
        "layer": [
            {
                "data": {"values": rows},
                "mark": {"type": "bar", "color": "#808890"},
                "encoding": {
                    "x": {**x, "field": "from", "bin": "binned"},
                    "x2": {"field": "to"},
                    "y": {"field": "pairs", "type": "quantitative", "title": "pairs of words"},
                    "tooltip": [
                        {"field": "from", "format": ".2f"},
                        {"field": "to", "format": ".2f"},
                        {"field": "pairs"},
                    ],
                },
            },
            {
                "data": {"values": [{"from": mine, "is": "A"}]},
                "mark": {"type": "rule", "color": VERMILLION, "strokeWidth": 3},
                "encoding": {"x": {**x, "field": "from"}},
            },
            {
                "data": {"values": [{"from": mine, "is": "A"}]},
                "mark": {
                    "type": "text",
                    "color": ink,
                    "fontWeight": "bold",
                    "fontSize": 14,
                    "y": 10,
                    **beside,
                },
                "encoding": {"x": {**x, "field": "from"}, "text": {"field": "is"}},
            },
        ],
        "config": config(ink),
    }
