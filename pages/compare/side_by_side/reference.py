"""Compare our core to the transformers model with the same weights, layer by layer."""

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
from serving.prompts import prepare_prompt
from ui.charts.show import show as show_chart
from ui.text.formatting import difference
from ui.widgets import messages
from ui.widgets.plain_table import plain_table

if TYPE_CHECKING:
    from pretrained.comparison import Differences

# ImportError: transformers is not installed
ERRORS = (*models.LOAD_ERRORS, ImportError)


@dataclass(frozen=True)
class Reference:
    """The differences between both implementations of a model on one text."""

    title: str
    n_tokens: int
    differences: Differences

    @property
    def table(self) -> pd.DataFrame:
        """One row per layer: largest absolute differences of its weights and its output."""
        return pd.DataFrame(
            {
                "layer": range(len(self.differences.weights)),
                "max |Δ weights|": self.differences.weights,
                "max |Δ hidden|": self.differences.hidden,
                "max |hidden|": self.differences.hidden_sizes,
            }
        )

    def show_table(self) -> None:
        """Show the table, with small numbers as powers of ten."""
        forms = dict.fromkeys(("max |Δ weights|", "max |Δ hidden|"), "{:.1e}")
        forms["max |hidden|"] = "{:.1f}"
        plain_table(self.table, "Largest differences in every layer", forms, max_rows=245)

    @property
    def sentence(self) -> str:
        """A sentence that says what was compared and how large the differences are."""
        differences = self.differences
        largest_by_name = {
            "all weights": max(differences.weights),
            "hidden states": max(differences.hidden),
        }
        if differences.logits is not None:
            largest_by_name["logits"] = differences.logits
        listed = ", ".join(f"{name} {difference(value)}" for name, value in largest_by_name.items())
        return (
            f"Largest differences between our core and {differences.reference} from transformers, "
            f"for {self.title} on {self.n_tokens} tokens in float32: {listed}."
        )


@cached(key=lambda name, text: (*models.key(name), text))
def reference(name: str, text: str) -> Reference:
    """The comparison for a model and a text, cached for all visitors.

    Raises: one of ERRORS.
    """
    from pretrained.comparison import compare

    model = models.get(name)
    tokens = prepare_prompt(model, text, MAX_MAP_TOKENS, "a head map").tokens
    theirs = models.reference(model)  # takes seconds, so load it outside the compute slot
    with compute.slot(exclusive=True):  # transformers stores recordings on the model
        return Reference(model.spec.title, len(tokens), compare(model.core, theirs, tokens.ids))


def show(requests: Iterable[tuple[str, str]]) -> None:
    """Show the comparison for each distinct model and text: sentence, chart and table."""
    columns = st.columns(2, gap="large")
    for place, ((name, text), column) in enumerate(
        zip(dict.fromkeys(requests), columns, strict=False)
    ):
        with column, st.spinner("Loading and running the transformers model …", show_time=True):
            try:
                comparison = reference(name, text)
            except ERRORS as error:
                messages.show_problem(error)
                continue
            st.text(comparison.sentence)
            show_chart(
                charts.differences,
                charts.long_table(comparison.table),
                comparison.differences.largest,
                key=f"side_by_side_reference_{place}",
            )
            comparison.show_table()
