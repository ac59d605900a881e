"""Downloads of the page "Calculator": its code and its link."""

from __future__ import annotations

from collections.abc import Mapping

from pages.kv_cache.calculator.setting import CacheScenario
from ui.export import downloads


def show(scenario: CacheScenario) -> None:
    """Show the page's code and link."""
    downloads.panel("calculator", snippet=snippet(scenario))


def snippet(scenario: CacheScenario) -> str:
    """Python code that prints the size of the cache in bytes."""
    model = scenario.model
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
    inputs = ",\n".join(f"    {name}={value!r}" for name, value in fields.items() if value)
    return (
        "from attention_core.costs.serving import cache_bytes\n"
        "from attention_core.costs.public_models import PublicModel\n\n"
        f'model = PublicModel(\n    name="model", family="", source="",\n{inputs},\n)\n'
        f"print(cache_bytes(model, {scenario.n_tokens}, batch_size={scenario.batch}, "
        f"bytes_per_value={scenario.bytes_per_value}))"
    )
