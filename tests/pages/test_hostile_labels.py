"""What visitors type reaches a chart as data: it is never read as an expression or as a field."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

import altair as alt
import numpy as np
import pandas as pd
import pytest

from pages.compare.ablate import charts as ablate
from pages.compare.generated_tokens import charts as generated_tokens
from pages.compare.word_pairs import charts as word_pairs
from pages.kv_cache.inside_the_cache import charts as inside_the_cache
from pages.kv_cache.inside_the_cache import full
from pages.kv_cache.what_is_recomputed import charts as what_is_recomputed
from pages.learn.similarity import charts as similarity
from pages.learn.similarity.words import BY_DOT, IN_TEXT
from pages.learn.why_several_heads import charts as why_several_heads
from tests.helpers.charts import svg
from ui.charts.show import specification

HOSTILE = [
    "'] || alert(1) || ['",
    "{datum.value}",
    "datum['secret']",
    "a.b[0]:Q",
    "<img src=x onerror=alert(1)>",
    'quoted "twice" \\ and \u2028 more',
    "\u202eright to left",
]


def predictions(label: str) -> alt.Chart:
    chances = {"p before": [0.5, 0.25], "p after": [0.3, 0.125]}
    table = pd.DataFrame({"token": [label, label], **chances})
    return ablate.predictions(ablate.before_and_after(table))


def generated_bars(label: str) -> alt.Chart:
    row = pd.DataFrame(
        {"position": [0, 1, 2], "token": [label, "b", "c"], "weight": [0.7, 0.3, np.nan]}
    )
    return generated_tokens.bars(row, 0.7)


def pair_grid(label: str) -> alt.LayerChart:
    weights = word_pairs.weights(np.arange(6).reshape(2, 3) / 10)
    return word_pairs.grid(weights, word_pairs.words(label), 0.5)


def full_cache(label: str) -> alt.LayerChart:
    table = pd.DataFrame(
        {
            "way": [full.AGAIN, full.RING],
            "step": [1, 2],
            full.LARGEST: [0.1, 0.2],
            full.DIVERGENCE: [0.01, 0.02],
            "likeliest": [label, label],
            "with full context": [label, label],
        }
    )
    return inside_the_cache.drift_chart(table, 1, 0)


def old_rows(label: str) -> alt.Chart:
    table = pd.DataFrame({"model": [label, "b"], "layer": [0, 1], "moved by": [0.0, 0.5]})
    return what_is_recomputed.contrast_chart(table)


def fan(label: str) -> alt.TopLevelMixin:
    numbers = {name: [0.5, 0.25] for name in ("length", "cosine", "degrees", "dot")}
    points = pd.DataFrame(
        {"token": [label, "b"], "which": [IN_TEXT, BY_DOT], **numbers}
        | {"along": [0.5, 1.5], "across": [0.75, 0.5]}
    )
    return similarity.fan_chart(points, label, 1.25)


def two_rows(label: str) -> alt.Chart:
    table = pd.DataFrame({"place": [0, 1] * 2, "token": [label, "b"] * 2})
    table["map"] = ["L0H1"] * 2 + ["L0H2"] * 2
    return why_several_heads.row_chart(table.assign(weight=[0.7, 0.3, 0.2, 0.8]), (1, 2))


# their pictures show the label
DRAWN = [predictions, generated_bars, pair_grid, old_rows, fan, two_rows]
CHARTS = [*DRAWN, full_cache]


def strings(part: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text in a description, and the names on the way to it."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield (*place, name), name
            yield from strings(value, (*place, name))
    elif isinstance(part, list):
        for value in part:
            yield from strings(value, place)
    elif isinstance(part, str):
        yield place, part


@pytest.mark.parametrize("label", HOSTILE)
@pytest.mark.parametrize("build", CHARTS)
def test_a_label_is_data_and_nothing_else(build: Callable[[str], alt.TopLevelMixin], label: str):
    described = specification(build, label, ink="#1d2730", paper="#ffffff")
    holding = {place[-2:]: text for place, text in strings(described) if label in text}
    expression = holding.pop(("axis", "labelExpr"), "[][datum.value]")
    assert expression.endswith("[datum.value]")
    json.loads(expression.removesuffix("[datum.value]"))  # a list of strings and nothing else
    places = set(holding)
    # a row of a table, or the list of a scale's values, which Vega compares and never runs
    allowed = {("values", name) for name in ("token", "words", "model", "likeliest")}
    assert places
    assert places <= allowed | {("values", "with full context"), ("scale", "domain")}


@pytest.mark.parametrize("build", DRAWN)
def test_the_picture_shows_the_label_as_it_was_typed(build: Callable[[str], alt.TopLevelMixin]):
    for label in filter(lambda label: len(label) < 20, HOSTILE):
        chart = specification(build, label, ink="#1d2730", paper="#ffffff")
        assert label in "".join(ElementTree.fromstring(svg(chart)).itertext())


def test_tokens_that_print_alike_stay_apart():
    table = pd.DataFrame({"token": ["a", "a", "b"], "p before": [0.5, 0.2, 0.1], "p after": 0.0})
    rows = ablate.before_and_after(table)
    assert list(rows["token"].unique()) == ["a", "a₂", "b"]
    assert list(rows["probability"][::2]) == [0.5, 0.2, 0.1]
