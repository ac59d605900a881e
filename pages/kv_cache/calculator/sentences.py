"""Formulas and sentences of the page "Calculator"."""

from __future__ import annotations

from pages.kv_cache.calculator.setting import OWN, CacheScenario, size


def formula(scenario: CacheScenario) -> str:
    """The formula with the numbers filled in, one line per part of the cache."""
    from attention_core.costs.serving import cache_parts

    model = scenario.model
    if model.latent_size is not None:
        values = f"({model.latent_size} latent + {model.rope_size} rotary key)"
    else:
        values = f"{model.n_kv_heads} KV heads × {model.head_size} × 2 (K and V)"
    lines = []
    sequences = f"{scenario.batch} sequence{'' if scenario.batch == 1 else 's'}"
    for part in cache_parts(
        model,
        scenario.n_tokens,
        batch_size=scenario.batch,
        bytes_per_value=scenario.bytes_per_value,
    ):
        kept = "" if part.window is None else f" (window of {part.window:,})"
        lines.append(
            f"{part.n_layers} layers × {sequences} × {part.n_tokens:,} tokens{kept} × "
            f"{values} × {scenario.bytes_per_value} bytes = {part.n_bytes:,} bytes"
        )
    if len(lines) > 1:
        lines.append(f"total: {scenario.cache():,} bytes")
    return "\n".join(lines)


def remark(scenario: CacheScenario) -> str:
    """Notes about the chosen model, as Markdown without any visitor input."""
    from attention_core.costs.public_models import LECTURE_30B, LECTURE_DEEPSEEK

    model, cache = scenario.published, scenario.cache()
    sentences = []
    if scenario.model.name == LECTURE_30B.model.name:
        sentences.append(
            "The lecture gives 48 layers and a width of 7168, which matches 56 heads of size 128. "
            f"For 128 sequences of 1,024 tokens in 16 bits, it states {LECTURE_30B.printed}."
        )
    elif scenario.model == LECTURE_DEEPSEEK.model:
        own = scenario.cache(model)
        sentences.append(
            "The lecture counts keys and values for each of DeepSeek's 128 heads. For 100,000 "
            f"tokens in 16 bits, it states {LECTURE_DEEPSEEK.printed}. The real model stores one "
            f"latent and one rotary key per token, which takes **{size(own)}** here: "
            f"{cache / own:.0f} times less."
        )
    if model.name in ("GPT-3 XL", "GPT-3 13B"):
        sentences.append(
            f"The paper lists {model.n_heads} heads of size {model.head_size}, which makes "
            f"{model.n_heads * model.head_size}, but a width of {model.d_model}. The cache size "
            "follows from the heads."
        )
    if scenario.n_tokens > model.context_length:
        sentences.append(f"The model's published context is only {model.context_length:,} tokens.")
    if model.name == OWN:
        sentences = ["These are the shapes you entered under Settings."]
    return " ".join(sentences) or f"Published context: {model.context_length:,} tokens."


def crossing(scenario: CacheScenario) -> str:
    """A sentence about the context at which the cache is as large as the weights."""
    from attention_core.costs.serving import max_context

    even = max_context(scenario.model, scenario.weights, bytes_per_value=scenario.bytes_per_value)
    if even is None:
        return "One sequence's cache never outgrows the weights, because every layer has a window."
    together = max_context(
        scenario.model,
        scenario.weights,
        batch_size=scenario.batch,
        bytes_per_value=scenario.bytes_per_value,
    )
    sentence = f"One sequence's cache is as large as the weights at {even:,} tokens"
    if scenario.batch == 1:
        return f"{sentence}."
    if together == 0:
        return (
            f"{sentence}. All {scenario.batch} caches together exceed that size at the first token."
        )
    reached = (
        "never reach that size"
        if together is None
        else f"reach that size at {together:,} tokens each"
    )
    return f"{sentence}. All {scenario.batch} caches together {reached}."
