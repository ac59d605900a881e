"""The from-scratch core beside the transformers model of the same weights, layer by layer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from pages.compare.side_by_side import charts
from serving import compute, models
from serving.cache import cached
from serving.limits import MAX_MAP_TOKENS
from serving.prompts import prepare
from ui.charts.show import show as show_chart
from ui.text.number_text import written
from ui.widgets import messages
from ui.widgets.plain_table import plain_table

if TYPE_CHECKING:
    from pretrained.comparison import Differences

# ImportError: transformers is not installed
ERRORS = (*models.LOAD_ERRORS, ImportError)


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
        forms = dict.fromkeys(("max |Δ weights|", "max |Δ hidden|"), "{:.1e}")
        forms["max |hidden|"] = "{:.1f}"
        plain_table(self.table, "Largest differences of every layer", forms, most=245)

    @property
    def sentence(self) -> str:
        """A sentence that says what was compared, and how large the differences are."""
        differences = self.differences
        largest_by_name = {
            "all weights": max(differences.weights),
            "hidden states": max(differences.hidden),
        }
        if differences.logits is not None:
            largest_by_name["logits"] = differences.logits
        listed = ", ".join(
            f"{name} {written(value, '.1e')}" for name, value in largest_by_name.items()
        )
        alike = "" if differences.largest else " Here both are the same, bit for bit."
        return (
            f"{self.title}: our core beside {differences.reference} of transformers, "
            f"{self.n_tokens} tokens, float32. Largest differences: {listed}.{alike}"
        )


@cached(key=lambda name, text: (*models.key(name), text))
def reference(name: str, text: str) -> Reference:
    """The comparison for a model and a text, computed once for all visitors.

    Raises: one of ERRORS.
    """
    from pretrained.comparison import compare

    model = models.get(name)
    tokens = prepare(model, text, MAX_MAP_TOKENS, "a head map").tokens
    theirs = models.reference(model)  # takes seconds: not while others wait for their turn
    with compute.slot(exclusive=True):  # what transformers records hangs on the model itself
        return Reference(model.spec.title, len(tokens), compare(model.core, theirs, tokens.ids))


def show(requests: Iterable[tuple[str, str]]) -> None:
    """The comparison of each different model and text: a sentence, a chart and a table."""
    columns = st.columns(2, gap="large")
    for place, ((name, text), column) in enumerate(
        zip(dict.fromkeys(requests), columns, strict=False)
    ):
        with column, st.spinner("Loading and running the transformers model …", show_time=True):
            try:
                comparison = reference(name, text)
            except ERRORS as error:
                messages.problem(error)
                continue
            st.text(comparison.sentence)
            show_chart(
                charts.differences,
                charts.long_table(comparison.table),
                comparison.differences.largest,
                key=f"side_by_side_reference_{place}",
            )
            comparison.show_table()
