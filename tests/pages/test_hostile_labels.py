"""User text reaches charts as data, never as an expression or a field name."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

import altair as alt
import numpy as np
import pandas as pd
import pytest

from pages.compare.ablate import charts as ablate
from pages.compare.word_pairs import charts as word_pairs
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
    return ablate.predictions(ablate.long_table(table))


def pair_grid(label: str) -> alt.LayerChart:
    weights = word_pairs.weights(np.arange(6).reshape(2, 3) / 10)
    return word_pairs.grid(weights, word_pairs.words(label), 0.5)


# A scale that lists the labels, and an axis whose expression contains them.
CHARTS = [predictions, pair_grid]


def strings(part: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every string in a description, with the path to it."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield (*path, name), name
            yield from strings(value, (*path, name))
    elif isinstance(part, list):
        for value in part:
            yield from strings(value, path)
    elif isinstance(part, str):
        yield path, part


@pytest.mark.parametrize("label", HOSTILE)
@pytest.mark.parametrize("build", CHARTS)
def test_label_is_only_data(build: Callable[[str], alt.TopLevelMixin], label: str):
    described = specification(build, label, ink="#1d2730", paper="#ffffff")
    holding = {path[-2:]: text for path, text in strings(described) if label in text}
    expression = holding.pop(("axis", "labelExpr"), "[][datum.value]")
    assert expression.endswith("[datum.value]")
    json.loads(expression.removesuffix("[datum.value]"))  # Only a list of strings.
    # A table row, or a scale's list of values, which Vega compares but never evaluates.
    assert set(holding)
    assert set(holding) <= {("values", "token"), ("values", "words"), ("scale", "domain")}


@pytest.mark.parametrize("build", CHARTS)
def test_picture_shows_the_label_unchanged(build: Callable[[str], alt.TopLevelMixin]):
    for label in filter(lambda label: len(label) < 20, HOSTILE):
        chart = specification(build, label, ink="#1d2730", paper="#ffffff")
        assert label in "".join(ElementTree.fromstring(svg(chart)).itertext())


def test_tokens_that_look_alike_stay_separate():
    table = pd.DataFrame({"token": ["a", "a", "b"], "p before": [0.5, 0.2, 0.1], "p after": 0.0})
    rows = ablate.long_table(table)
    assert list(rows["token"].unique()) == ["a", "a₂", "b"]
    assert list(rows["probability"][::2]) == [0.5, 0.2, 0.1]
