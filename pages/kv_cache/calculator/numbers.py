"""Tables and chart data of the page "Calculator"."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from pages.kv_cache.calculator.setting import CONTEXTS, GB, LONGEST, CacheScenario, size
from ui.text.formatting import format_number, plural

REAL, PLAIN = "actual cache", "plain multi-head"
CACHE, WEIGHTS, LEFT = "KV cache", "weights", "memory left after weights"
WITHIN, BEYOND = "within its context", "longer than its context"
EXPLAINED = [1024, 4096, 16_384, 65_536, 131_072, 262_144, LONGEST]


def summary(scenario: CacheScenario) -> pd.DataFrame:
    """The page's first table: cache, weights, and what fits into memory."""
    from attention_core.costs.serving import max_context, max_sequences

    cache, width = scenario.cache(), scenario.bytes_per_value
    next_token = scenario.cache(n_tokens=scenario.n_tokens + 1) - cache
    longest = max_context(
        scenario.model, scenario.free, batch_size=scenario.batch, bytes_per_value=width
    )
    fitting = max_sequences(scenario.model, scenario.free, scenario.n_tokens, bytes_per_value=width)
    plain = scenario.cache(scenario.published.as_multi_head())
    free = size(scenario.free) if scenario.free > 0 else f"none: {size(-scenario.free)} too little"
    rows = {
        "KV cache": f"{size(cache)}, {format_number(cache / scenario.weights, '.3g')} times the "
        "weights",
        "Weights": size(scenario.weights),
        "Each additional token of a sequence": f"{next_token // scenario.batch:,} bytes",
        "The first token of a sequence": f"{scenario.cache(n_tokens=1) // scenario.batch:,} bytes",
        "With plain multi-head attention": f"{size(plain)}, "
        f"{format_number(plain / cache, '.4g')} times "
        "the cache",
        f"Left of {scenario.memory // GB} GB after the weights": free,
        f"Sequences of {scenario.n_tokens:,} tokens that fit": f"{fitting:,}",
        f"Longest context for {plural(scenario.batch, 'sequence')}": (
            "unlimited: every layer has a window" if longest is None else f"{longest:,} tokens"
        ),
    }
    return pd.DataFrame({"Quantity": list(rows), "Value": list(rows.values())})


def all_models(scenario: CacheScenario) -> pd.DataFrame:
    """One row per listed model, all with these settings."""
    from attention_core.costs.public_models import PUBLIC_MODELS
    from attention_core.costs.serving import cache_bytes, weight_bytes

    width = scenario.bytes_per_value
    return pd.DataFrame(
        {
            "model": model.name,
            "form": model.form,
            "layers": model.n_layers,
            "query heads": model.n_heads,
            "KV heads": model.n_kv_heads,
            "head size": model.head_size,
            "window": model.window,
            "layers without window": model.n_layers if not model.window else model.n_global_layers,
            "latent + rotary": (model.latent_size or 0) + (model.rope_size or 0) or None,
            "context": model.context_length,
            "within context": scenario.n_tokens <= model.context_length,
            "cache, bytes": scenario.cache(model),
            "as plain MHA, bytes": scenario.cache(model.as_multi_head()),
            "first token, bytes": cache_bytes(model, 1, bytes_per_value=width),
            "weights, bytes": weight_bytes(model.n_parameters, scenario.weight_bits),
            "parameters": model.n_parameters,
            "source": model.source,
        }
        for model in PUBLIC_MODELS
    )


@dataclass(frozen=True)
class Family:
    """GPT-3's eight sizes at full context, one row each.

    exponent: the cache grows as the parameter count to this power.
    """

    table: pd.DataFrame
    exponent: float

    @property
    def readable_table(self) -> pd.DataFrame:
        """The table with sizes in GB or MB instead of bytes."""
        return self.table.assign(
            parameters=[
                f"{format_number(n / 1e9, '.4g')} billion" for n in self.table["parameters"]
            ],
            weights=self.table["weights, bytes"].map(size),
            cache=self.table["cache, bytes"].map(size),
        ).drop(columns=["weights, bytes", "cache, bytes"])


def gpt3_family(scenario: CacheScenario) -> Family:
    """The eight GPT-3 sizes with the chosen batch size and number formats."""
    from attention_core.costs.public_models import GPT3_FAMILY
    from attention_core.costs.serving import growth_exponent, weight_bytes

    table = pd.DataFrame(
        {
            "model": model.name.removeprefix("GPT-3 "),
            "layers": model.n_layers,
            "heads × size": model.n_heads * model.head_size,
            "parameters": model.n_parameters,
            "weights, bytes": weight_bytes(model.n_parameters, scenario.weight_bits),
            "cache, bytes": scenario.cache(model, model.context_length),
        }
        for model in GPT3_FAMILY
    )
    exponent = growth_exponent(list(table["parameters"]), list(table["cache, bytes"]))
    return Family(table, exponent)


def price(scenario: CacheScenario) -> pd.DataFrame:
    """The cost of the next token at increasing lengths, up to the end of the context."""
    from attention_core.costs.serving import max_sequences, token_cost

    model = scenario.model
    end = max(model.context_length, scenario.n_tokens)
    rows = []
    for n_tokens in sorted({n for n in EXPLAINED if n <= end} | {scenario.n_tokens}):
        cost = token_cost(
            model,
            n_tokens,
            batch_size=scenario.batch,
            bytes_per_value=scenario.bytes_per_value,
            weight_bits=scenario.weight_bits,
        )
        rows.append(
            {
                "tokens so far": f"{n_tokens:,}",
                "operations: weights": _operations(cost.weight_operations),
                "operations: attention": _operations(cost.attention_operations),
                "read: weights": size(cost.weight_bytes),
                "read: cache": size(cost.cache_bytes),
                "sequences that fit": max_sequences(
                    model, scenario.free, n_tokens, bytes_per_value=scenario.bytes_per_value
                ),
            }
        )
    return pd.DataFrame(rows)


def _operations(count: float) -> str:
    """A count in words, such as "16.1 billion"."""
    for unit, factor in (("trillion", 10**12), ("billion", 10**9), ("million", 10**6)):
        if count >= factor:
            return f"{format_number(count / factor, ',.3g')} {unit}"
    return f"{count:,.0f}"


def lengths(scenario: CacheScenario) -> pd.DataFrame:
    """Cache sizes at every context, with columns `what`, `tokens` and `GB`."""
    forms = {REAL: scenario.published, PLAIN: scenario.published.as_multi_head()}
    if forms[PLAIN] == forms[REAL]:
        del forms[PLAIN]
    return pd.DataFrame(
        {"what": name, "tokens": n_tokens, "GB": scenario.cache(model, n_tokens) / GB}
        for name, model in forms.items()
        for n_tokens in CONTEXTS
    )


def levels(scenario: CacheScenario) -> pd.DataFrame:
    """The weights and the memory left after them, with columns `what` and `GB`."""
    sizes = {WEIGHTS: scenario.weights / GB}
    if scenario.free > 0:
        sizes[LEFT] = scenario.free / GB
    return pd.DataFrame({"what": list(sizes), "GB": list(sizes.values())})


def chosen_point(scenario: CacheScenario) -> pd.DataFrame:
    """The chosen context and its cache, in the format of `lengths`."""
    return pd.DataFrame(
        {"what": ["chosen"], "tokens": scenario.n_tokens, "GB": scenario.cache() / GB}
    )


def sizes_of_models(table: pd.DataFrame) -> pd.DataFrame:
    """Three rows per model: plain multi-head cache, actual cache and weights."""
    columns = {PLAIN: "as plain MHA, bytes", REAL: "cache, bytes", WEIGHTS: "weights, bytes"}
    return pd.DataFrame(
        {
            "model": entry["model"],
            "what": what,
            "GB": entry[column] / GB,
            "form": entry["form"],
            "context": WITHIN if entry["within context"] else BEYOND,
        }
        for entry in table.to_dict("records")
        for what, column in columns.items()
    )


def sizes_of_family(family: Family) -> pd.DataFrame:
    """Two rows per GPT-3 model: its weights and its cache at full context."""
    return pd.DataFrame(
        {
            "model": entry["model"],
            "what": what,
            "GB": entry[column] / GB,
            "parameters": entry["parameters"],
        }
        for what, column in ((WEIGHTS, "weights, bytes"), (CACHE, "cache, bytes"))
        for entry in family.table.to_dict("records")
    )
