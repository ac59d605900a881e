"""The page "Calculator" to take away: its charts, its code and its link."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pandas as pd

from pages.kv_cache.calculator import charts, numbers
from pages.kv_cache.calculator.setting import CacheScenario
from ui.export import take_away


def show(chosen: CacheScenario, everything: pd.DataFrame, family: numbers.Family) -> None:
    """Buttons, the code and the link."""
    take_away.panel(
        [take_away.pictures(partial(drawn, chosen, everything, family), "kv_cache_charts.zip")],
        code(chosen),
        prefix="calculator",
    )


def drawn(
    chosen: CacheScenario, everything: pd.DataFrame, family: numbers.Family
) -> take_away.Charts:
    """All charts of the page by the names of their files."""
    return {
        "cache_by_context": partial(
            charts.context_chart,
            numbers.lengths(chosen),
            numbers.levels(chosen),
            numbers.chosen_point(chosen),
        ),
        "all_models": partial(
            charts.models_chart,
            numbers.sizes_of_models(everything),
            chosen.model.name,
            chosen.in_words,
        ),
        "gpt3_family": partial(charts.family_chart, numbers.sizes_of_family(family)),
    }


def code(chosen: CacheScenario) -> str:
    """Python that prints the cache's bytes."""
    model = chosen.model
    fields: Mapping[str, object] = {
        name: getattr(model, name)
        for name in (
            "n_layers",
            "n_heads",
            "n_kv_heads",
            "head_size",
            "d_model",
            "n_parameters",
            "context_length",
            "window",
            "n_global_layers",
            "latent_size",
            "rope_size",
        )
    }
    given = ",\n".join(f"    {name}={value!r}" for name, value in fields.items() if value)
    return (
        "from attention_core.costs.serving import cache_bytes\n"
        "from attention_core.costs.public_models import PublicModel\n\n"
        f'model = PublicModel(\n    name="model", family="", source="",\n{given},\n)\n'
        f"print(cache_bytes(model, {chosen.n_tokens}, batch_size={chosen.batch}, "
        f"bytes_per_value={chosen.bytes_per_value}))"
    )
