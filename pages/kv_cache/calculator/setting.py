"""What the page "Calculator" shows: a model and a setting in, sizes, sentences and tables out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from ui.widgets.linked import linked

if TYPE_CHECKING:
    from attention_core.costs.public_models import PublicModel

GB = 10**9  # as the lectures count, and as memory is sold
OWN = "My own shapes"
BATCHES = [2**power for power in range(11)]
CONTEXTS = sorted({2**power for power in range(7, 21)} | {10_000, 100_000, 1_000_000})
MEMORIES = [4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 141, 192, 320, 640, 1128, 1536]  # GB
CACHE_BITS = {"float32": 32, "bfloat16, float16": 16, "8 bits": 8}
WEIGHT_BITS = CACHE_BITS | {"4 bits": 4}
LONGEST_ROW = 2**20
EXPLAINED = [1024, 4096, 16_384, 65_536, 131_072, 262_144, LONGEST_ROW]


def _example(
    model: str, batch: int, context: int, memory: int, *, plain: bool = False
) -> dict[str, Any]:
    numbers = {"cache": "bfloat16, float16", "weights": "bfloat16, float16"}
    return {"model": model, "batch": batch, "context": context, "memory": memory, "plain": plain,
            **numbers}  # fmt: skip


# What the buttons set, by their names: the ends of widget keys.
PRESETS: dict[str, dict[str, Any]] = {
    "Lecture: 30B": _example("The lecture's 30B", 128, 1024, 320),
    "Lecture: DeepSeek": _example("DeepSeek-V3", 1, 100_000, 1536, plain=True),
    "DeepSeek as it is": _example("DeepSeek-V3", 1, 100_000, 1536),
    "A full GPT-3": _example("GPT-3 175B", 32, 2048, 640),
    "Mistral's window": _example("Mistral 7B v0.1", 8, 32_768, 24),
}


@dataclass(frozen=True)
class Setting:
    """A model and how it is served.

    `model` has the shapes that are counted; `published` those it has, which differ where plain
    multi-head attention was asked for. `memory` is in bytes.
    """

    model: PublicModel
    published: PublicModel
    batch: int
    n_tokens: int
    cache_bits: int
    weight_bits: int
    memory: int

    @property
    def bytes_per_value(self) -> int:
        """Of one cached number."""
        return self.cache_bits // 8

    @property
    def weights(self) -> int:
        """Bytes of all parameters."""
        from attention_core.costs.serving import weight_bytes

        return weight_bytes(self.model.n_parameters, self.weight_bits)

    @property
    def free(self) -> int:
        """Bytes that the weights leave; below 0 if they do not fit."""
        return self.memory - self.weights

    def cache(self, model: PublicModel | None = None, n_tokens: int | None = None) -> int:
        """Bytes of the cache, if asked for of another model or length in the same setting."""
        from attention_core.costs.serving import cache_bytes

        return cache_bytes(
            model or self.model,
            n_tokens or self.n_tokens,
            batch_size=self.batch,
            bytes_per_value=self.bytes_per_value,
        )


def use_preset() -> None:
    """Put the chosen example into the controls."""
    chosen = st.session_state["calculator_preset"]
    if chosen is not None:
        for name, value in PRESETS[chosen].items():
            st.session_state[f"calculator_{name}"] = value
        st.session_state["calculator_preset"] = None


def choose_model() -> PublicModel:
    """One of the listed models, the lecture's, or shapes typed in.

    Raises: ValueError for typed shapes that do not fit each other.
    """
    from attention_core.costs.public_models import LECTURE_30B, PUBLIC_MODELS

    models = {model.name: model for model in (*PUBLIC_MODELS, LECTURE_30B.model)}
    names = [*models, OWN]
    name = linked(st.selectbox, "Model", names, names.index("Llama-3.1 8B"), key="calculator_model")
    return models[name] if name != OWN else _own_shapes()


def _own_shapes() -> PublicModel:
    from attention_core.costs.public_models import PublicModel

    asked = {
        "n_layers": ("Layers", 1, 1000, 32),
        "n_heads": ("Query heads", 1, 1024, 32),
        "n_kv_heads": ("Key/value heads", 1, 1024, 8),
        "head_size": ("Head size", 1, 4096, 128),
        "window": ("Window (0: none)", 0, 1_000_000, 0),
        "n_global_layers": ("Layers without window", 0, 1000, 0),
        "latent_size": ("Latent size (0: none)", 0, 100_000, 0),
        "rope_size": ("Rotary key beside it", 0, 100_000, 0),
        "millions": ("Million parameters", 1, 10_000_000, 7000),
    }
    sizes = {}
    for place, (name, (label, low, high, default)) in enumerate(asked.items()):
        if place % 3 == 0:
            columns = st.columns(3)
        with columns[place % 3]:
            sizes[name] = _whole(label, f"calculator_{name}", low, high, default)
    millions = sizes.pop("millions")
    for name in ("window", "latent_size", "rope_size"):  # 0 says that it has none
        sizes[name] = sizes[name] or None
    return PublicModel(
        name=OWN,
        family="own",
        d_model=sizes["n_heads"] * sizes["head_size"],
        n_parameters=millions * 10**6,
        context_length=LONGEST_ROW,
        source="typed here",
        **sizes,
    )


def _whole(label: str, key: str, low: int, high: int, default: int) -> Any:
    """A whole number in a widget of floats: with whole ones, it fails on a link that says 1e400."""
    chosen = linked(
        st.number_input, label, float(low), float(high), float(default), 1.0, format="%.0f", key=key
    )
    return round(chosen)


def setting(
    published: PublicModel,
    *,
    plain: bool,
    batch: int,
    n_tokens: int,
    cache: str,
    weights: str,
    memory: int,
) -> Setting:
    """The setting from what the widgets hold: names of number formats, memory in GB."""
    model = published.as_multi_head() if plain else published
    return Setting(
        model, published, batch, n_tokens, CACHE_BITS[cache], WEIGHT_BITS[weights], memory * GB
    )


def size(n_bytes: float) -> str:
    """Bytes with a decimal unit and four digits: 180.4 GB."""
    for unit, factor in (("TB", 10**12), ("GB", GB), ("MB", 10**6), ("kB", 1000)):
        if abs(n_bytes) >= factor:
            return f"{n_bytes / factor:.4g} {unit}"
    return f"{n_bytes:.4g} bytes"


def formula(chosen: Setting) -> str:
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


def summary(chosen: Setting) -> pd.DataFrame:
    """What the page says first: the cache beside the weights, and what fits."""
    from attention_core.costs.serving import longest_context, sequences_that_fit

    cache, width = chosen.cache(), chosen.bytes_per_value
    next_token = chosen.cache(n_tokens=chosen.n_tokens + 1) - cache
    longest = longest_context(
        chosen.model, chosen.free, batch_size=chosen.batch, bytes_per_value=width
    )
    fitting = sequences_that_fit(chosen.model, chosen.free, chosen.n_tokens, bytes_per_value=width)
    plain = chosen.cache(chosen.published.as_multi_head())
    free = size(chosen.free) if chosen.free > 0 else f"nothing: {size(-chosen.free)} too little"
    rows = {
        "KV cache": f"{size(cache)}, {cache / chosen.weights:.3g} times the weights",
        "Weights": size(chosen.weights),
        "Each further token of a sequence": f"{next_token // chosen.batch:,} bytes",
        "The first token of a sequence": f"{chosen.cache(n_tokens=1) // chosen.batch:,} bytes",
        "As plain multi-head attention": f"{size(plain)}, {plain / cache:.4g} times the cache",
        f"Left of {chosen.memory // GB} GB by the weights": free,
        f"Sequences of {chosen.n_tokens:,} tokens in that": f"{fitting:,}",
        f"Longest context for {chosen.batch} at once": (
            "any: every layer has a window" if longest is None else f"{longest:,} tokens"
        ),
    }
    return pd.DataFrame({"What": list(rows), "How much": list(rows.values())})


def remark(chosen: Setting) -> str:
    """What to know about this choice, as Markdown without any text of a visitor."""
    from attention_core.costs.public_models import LECTURE_30B, LECTURE_DEEPSEEK

    model, cache = chosen.published, chosen.cache()
    said = []
    if chosen.model.name == LECTURE_30B.model.name:
        said.append(
            "The lecture gives 48 layers and a width of 7168; 56 heads of 128 make that width. "
            f"With 128 sequences of 1,024 tokens in 16 bits it prints {LECTURE_30B.printed}."
        )
    elif chosen.model == LECTURE_DEEPSEEK.model:
        own = chosen.cache(model)
        said.append(
            "So the lecture counts DeepSeek, with keys and values for each of 128 heads: at "
            f"100,000 tokens in 16 bits it prints {LECTURE_DEEPSEEK.printed}. The model itself "
            f"keeps one latent and one rotary key a token: **{size(own)}** here, "
            f"a {cache / own:.0f}th."
        )
    if model.name in ("GPT-3 XL", "GPT-3 13B"):
        said.append(
            f"As printed in the paper: {model.n_heads} heads of {model.head_size} are "
            f"{model.n_heads * model.head_size}, but the width is {model.d_model}. The cache "
            "counts heads."
        )
    if chosen.n_tokens > model.context_length:
        said.append(f"Its published context ends at {model.context_length:,} tokens.")
    if model.name == OWN:
        said = ["The shapes that are typed above."]
    return " ".join(said) or f"Its published context: {model.context_length:,} tokens."


def everything(chosen: Setting) -> pd.DataFrame:
    """All listed models in this setting, one row each."""
    from attention_core.costs.public_models import PUBLIC_MODELS
    from attention_core.costs.serving import cache_bytes, weight_bytes

    width = chosen.bytes_per_value
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
            "within context": chosen.n_tokens <= model.context_length,
            "cache, bytes": chosen.cache(model),
            "as plain MHA, bytes": chosen.cache(model.as_multi_head()),
            "first token, bytes": cache_bytes(model, 1, bytes_per_value=width),
            "weights, bytes": weight_bytes(model.n_parameters, chosen.weight_bits),
            "parameters": model.n_parameters,
            "source": model.source,
        }
        for model in PUBLIC_MODELS
    )


@dataclass(frozen=True)
class Family:
    """GPT-3's eight sizes at their full context: one row each, and how the cache grows.

    `exponent`: the cache grows with the parameters to this power.
    """

    table: pd.DataFrame
    exponent: float

    @property
    def readable(self) -> pd.DataFrame:
        """The table with units."""
        return self.table.assign(
            parameters=[f"{n / 1e9:.4g} billion" for n in self.table["parameters"]],
            weights=self.table["weights, bytes"].map(size),
            cache=self.table["cache, bytes"].map(size),
        ).drop(columns=["weights, bytes", "cache, bytes"])


def gpt3_family(chosen: Setting) -> Family:
    """The family with the batch and number formats of the setting."""
    from attention_core.costs.public_models import GPT3_FAMILY
    from attention_core.costs.serving import growth_exponent, weight_bytes

    table = pd.DataFrame(
        {
            "model": model.name.removeprefix("GPT-3 "),
            "layers": model.n_layers,
            "heads × size": model.n_heads * model.head_size,
            "parameters": model.n_parameters,
            "weights, bytes": weight_bytes(model.n_parameters, chosen.weight_bits),
            "cache, bytes": chosen.cache(model, model.context_length),
        }
        for model in GPT3_FAMILY
    )
    exponent = growth_exponent(list(table["parameters"]), list(table["cache, bytes"]))
    return Family(table, exponent)


def price(chosen: Setting) -> pd.DataFrame:
    """What the next token costs after more and more tokens, up to where the context ends."""
    from attention_core.costs.serving import sequences_that_fit, token_cost

    model = chosen.model
    end = max(model.context_length, chosen.n_tokens)
    rows = []
    for n_tokens in sorted({n for n in EXPLAINED if n <= end} | {chosen.n_tokens}):
        cost = token_cost(
            model,
            n_tokens,
            batch_size=chosen.batch,
            bytes_per_value=chosen.bytes_per_value,
            weight_bits=chosen.weight_bits,
        )
        rows.append(
            {
                "tokens before": f"{n_tokens:,}",
                "operations: weights": _operations(cost.weight_operations),
                "operations: attention": _operations(cost.attention_operations),
                "read: weights": size(cost.weight_bytes),
                "read: cache": size(cost.cache_bytes),
                "sequences that fit": sequences_that_fit(
                    model, chosen.free, n_tokens, bytes_per_value=chosen.bytes_per_value
                ),
            }
        )
    return pd.DataFrame(rows)


def _operations(count: float) -> str:
    """A count in words, as a phone's reader takes it in: 16.1 billion."""
    for unit, factor in (("trillion", 10**12), ("billion", 10**9), ("million", 10**6)):
        if count >= factor:
            return f"{count / factor:,.3g} {unit}"
    return f"{count:,.0f}"


def crossing(chosen: Setting) -> str:
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
    reached = "never" if together is None else f"at {together:,} each"
    return f"{sentence}; the caches of these {chosen.batch} together {reached}."


def code(chosen: Setting) -> str:
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
