"""The from-scratch core beside the transformers model of the same weights, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from serving import models, turns
from serving.cache import kept
from serving.limits import MAX_MAP_TOKENS, SMALL_CACHE_BYTES
from serving.prompts import prepare
from ui.charts import style, theme
from ui.widgets import messages

if TYPE_CHECKING:
    from pretrained.comparison import Differences

# transformers is not installed, or its file of the model cannot be read
ERRORS = (*models.LOAD_ERRORS, ImportError)

WEIGHTS, HIDDEN = "attention weights", "hidden states"


@dataclass(frozen=True)
class Reference:
    """The differences of one model on one text, as a table and a chart."""

    title: str
    n_tokens: int
    differences: Differences

    @property
    def table(self) -> pd.DataFrame:
        """One row a layer: the largest absolute difference of its weights and its output."""
        return pd.DataFrame(
            {
                "layer": range(len(self.differences.weights)),
                "max |Δ weights|": self.differences.weights,
                "max |Δ hidden|": self.differences.hidden,
                "max |hidden|": self.differences.hidden_sizes,
            }
        )

    def show_table(self) -> None:
        """The table on the page, small numbers as powers of ten."""
        columns = {
            name: st.column_config.NumberColumn(format="%.1e")
            for name in ("max |Δ weights|", "max |Δ hidden|")
        } | {"max |hidden|": st.column_config.NumberColumn(format="%.1f")}
        st.dataframe(self.table, hide_index=True, height=245, column_config=columns)

    @property
    def sentence(self) -> str:
        """What was compared, and the largest difference."""
        found = self.differences
        said = {"all weights": max(found.weights), "hidden states": max(found.hidden)}
        if found.logits is not None:
            said["logits"] = found.logits
        listed = ", ".join(f"{name} {value:.1e}" for name, value in said.items())
        alike = "" if found.largest else " Here both are the same, bit for bit."
        return (
            f"{self.title}: our core beside {found.reference} of transformers, {self.n_tokens} "
            f"tokens, float32. Largest differences: {listed}.{alike}"
        )

    def chart(self, ink: str) -> dict[str, Any]:
        """Both differences over the layers, on a logarithmic axis; with 0 below all powers."""
        rows = [
            {"layer": layer, "of": name, "difference": value}
            for name, values in (
                (WEIGHTS, self.differences.weights),
                (HIDDEN, self.differences.hidden),
            )
            for layer, value in enumerate(values)
        ]
        powers = range(-7, max(-4, math.ceil(math.log10(self.differences.largest or 1e-4))) + 1)
        return {
            "height": 260,
            "data": {"values": rows},
            "mark": {"type": "line", "point": {"size": 50}, "strokeWidth": 1.5},
            "encoding": {
                "x": {
                    "field": "layer",
                    "type": "quantitative",
                    "title": "layer",
                    "axis": {"tickMinStep": 1},
                },
                "y": {
                    "field": "difference",
                    "type": "quantitative",
                    "title": "largest |difference|",
                    # symlog: like a logarithm above its constant, and it has a place for 0
                    "scale": {
                        "type": "symlog",
                        "constant": 1e-8,
                        "domain": [0, 10.0 ** powers[-1]],
                    },
                    "axis": {
                        "values": [0, *(10.0**power for power in powers)],
                        "labelExpr": "datum.value ? format(datum.value, '~e') : '0'",
                    },
                },
                "color": {
                    "field": "of",
                    "type": "nominal",
                    "title": None,
                    "scale": {
                        "domain": [WEIGHTS, HIDDEN],
                        "range": [style.BLUE, style.VERMILLION],
                    },
                    "legend": {"orient": "top"},
                },
                "shape": {
                    "field": "of",
                    "type": "nominal",
                    "title": None,
                    "scale": {"domain": [WEIGHTS, HIDDEN]},  # as the colours': one legend for both
                    "legend": {"orient": "top"},
                },
                "tooltip": [
                    {"field": "of", "title": "of"},
                    {"field": "layer", "title": "layer"},
                    {"field": "difference", "title": "largest difference", "format": ".2e"},
                ],
            },
            "config": style.config(ink),
        }


@kept(SMALL_CACHE_BYTES, key=lambda name, text: (*models.key(name), text))
def reference(name: str, text: str) -> Reference:
    """The comparison for a model and a text, computed once for all visitors.

    Raises: one of ERRORS.
    """
    from pretrained.comparison import compare

    model = models.get(name)
    tokens = prepare(model, text, MAX_MAP_TOKENS, "a head map").tokens
    _ = model.reference  # loading takes seconds: not while others wait for their turn
    with turns.turn():
        return Reference(model.spec.title, len(tokens), compare(model, tokens.ids))


def show(asked: Iterable[tuple[str, str]]) -> list[Reference]:
    """The comparison of each model and text, once: sentence, chart and table."""
    found = []
    columns = st.columns(2, gap="large")
    for place, ((name, text), column) in enumerate(
        zip(dict.fromkeys(asked), columns, strict=False)
    ):
        with column, st.spinner("Loading and running the transformers model …", show_time=True):
            try:
                one = reference(name, text)
            except ERRORS as error:
                messages.problem(error)
                continue
            st.text(one.sentence)
            st.vega_lite_chart(one.chart(theme.ink()), key=f"side_by_side_reference_{place}")
            one.show_table()
            found.append(one)
    return found
