"""What the page "Calculator" says of a setting, in formulas and sentences."""

from __future__ import annotations

from pages.kv_cache.calculator.setting import OWN, CacheScenario, size


def formula(chosen: CacheScenario) -> str:
    """The formula with the numbers of every part of the cache filled in."""
    from attention_core.costs.serving import cache_parts

    model = chosen.model
    if model.latent_size is not None:
        values = f"({model.latent_size} latent + {model.rope_size} rotary key)"
    else:
        values = f"{model.n_kv_heads} KV heads × {model.head_size} × 2 (K and V)"
    lines = []
    sequences = f"{chosen.batch} sequence{'' if chosen.batch == 1 else 's'}"
    for part in cache_parts(
        model, chosen.n_tokens, batch_size=chosen.batch, bytes_per_value=chosen.bytes_per_value
    ):
        kept = "" if part.window is None else f" kept, of a window of {part.window:,}"
        lines.append(
            f"{part.n_layers} layers × {sequences} × {part.n_tokens:,} tokens{kept} × "
            f"{values} × {chosen.bytes_per_value} bytes = {part.n_bytes:,} bytes"
        )
    if len(lines) > 1:
        lines.append(f"together {chosen.cache():,} bytes")
    return "\n".join(lines)


def remark(chosen: CacheScenario) -> str:
    """What to know about this choice, as Markdown without any text of a visitor."""
    from attention_core.costs.public_models import LECTURE_30B, LECTURE_DEEPSEEK

    model, cache = chosen.published, chosen.cache()
    sentences = []
    if chosen.model.name == LECTURE_30B.model.name:
        sentences.append(
            "The lecture gives 48 layers and a width of 7168; 56 heads of 128 make that width. "
            f"With 128 sequences of 1,024 tokens in 16 bits it prints {LECTURE_30B.printed}."
        )
    elif chosen.model == LECTURE_DEEPSEEK.model:
        own = chosen.cache(model)
        sentences.append(
            "So the lecture counts DeepSeek, with keys and values for each of 128 heads: at "
            f"100,000 tokens in 16 bits it prints {LECTURE_DEEPSEEK.printed}. The model itself "
            f"keeps one latent and one rotary key a token: **{size(own)}** here, "
            f"a {cache / own:.0f}th."
        )
    if model.name in ("GPT-3 XL", "GPT-3 13B"):
        sentences.append(
            f"As printed in the paper: {model.n_heads} heads of {model.head_size} are "
            f"{model.n_heads * model.head_size}, but the width is {model.d_model}. The cache "
            "counts heads."
        )
    if chosen.n_tokens > model.context_length:
        sentences.append(f"Its published context ends at {model.context_length:,} tokens.")
    if model.name == OWN:
        sentences = ["The shapes are those typed under Settings."]
    return " ".join(sentences) or f"Its published context: {model.context_length:,} tokens."


def crossing(chosen: CacheScenario) -> str:
    """The context at which one sequence's cache reaches the size of the weights, as a sentence."""
    from attention_core.costs.serving import longest_context

    even = longest_context(chosen.model, chosen.weights, bytes_per_value=chosen.bytes_per_value)
    if even is None:
        return "The cache of one sequence stays smaller than the weights: all layers have windows."
    together = longest_context(
        chosen.model,
        chosen.weights,
        batch_size=chosen.batch,
        bytes_per_value=chosen.bytes_per_value,
    )
    sentence = f"The cache of one sequence is as large as the weights at {even:,} tokens"
    if chosen.batch == 1:
        return f"{sentence}."
    if together == 0:
        return f"{sentence}; the caches of these {chosen.batch} together with their first tokens."
    reached = "never" if together is None else f"at {together:,} each"
    return f"{sentence}; the caches of these {chosen.batch} together {reached}."
