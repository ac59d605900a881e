"""Create loadable model folders with extreme values, sizes or options."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tests.helpers.reference_models import enlarge
from ui.widgets.controls import SENTENCES

Change = Callable[[Any], object]

# All sizes are distinct. The pages' texts fit, with room for a few new tokens.
VOCABULARY, WORDS = 331, 317
SIZES: dict[str, dict[str, int]] = {
    "gpt2": {"n_positions": 173, "n_embd": 20, "n_layer": 3, "n_head": 5, "n_inner": 52},
    "llama": {
        "max_position_embeddings": 179, "hidden_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 6, "num_key_value_heads": 3, "intermediate_size": 44,
    },
    "bert": {
        "max_position_embeddings": 167, "hidden_size": 28, "num_hidden_layers": 3,
        "num_attention_heads": 7, "intermediate_size": 36,
    },
}  # fmt: skip
SMALLEST: dict[str, dict[str, int]] = {
    "gpt2": {"n_layer": 1, "n_head": 1},
    "llama": {"num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1},
    "bert": {"num_hidden_layers": 1, "num_attention_heads": 1},
}
FAMILIES = tuple(SIZES)
HUGE = 3e38  # finite in float32, but twice this isn't


def new_model(family: str, **changes: Any) -> Any:
    """Return a small random transformers model with weights far from their initial values."""
    import transformers

    classes = {
        "gpt2": (transformers.GPT2Config, transformers.GPT2LMHeadModel),
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
        "bert": (transformers.BertConfig, transformers.BertForMaskedLM),
    }
    config, model = classes[family]
    return enlarge(model(config(**{"vocab_size": VOCABULARY} | SIZES[family] | changes)))


def save_tokenizer(folder: Path, family: str, n_words: int = WORDS) -> None:
    """Save a tokenizer for the pages' sentences with at most `n_words` tokens in total."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    if family == "bert":
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        text = " ".join(SENTENCES).lower().replace(".", " .").replace("'", " ' ")
        words = list(dict.fromkeys(text.split()))
        vocabulary = [*special, *words, *(f"[unused{n}]" for n in range(n_words))][:n_words]
        (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
        return
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if n_words > 256 else ["e"]
    trainer = trainers.BpeTrainer(
        vocab_size=n_words, initial_alphabet=alphabet, limit_alphabet=min(n_words, 256),
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(SENTENCES * 2, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))


def save(
    models: Path,
    name: str,
    family: str,
    change: Change | None = None,
    *,
    n_words: int = WORDS,
    config: Mapping[str, Any] | None = None,
    **sizes: Any,
) -> Path:
    """Create a folder with a tiny, modified model; `config` is merged into config.json."""
    folder = models / name
    model = new_model(family, **sizes)
    if change is not None:
        with torch.no_grad():
            change(model)
    model.save_pretrained(folder)
    save_tokenizer(folder, family, n_words)
    if config:
        file = folder / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | dict(config)))
    return folder


def _tables(model: Any) -> tuple[nn.Embedding, nn.Embedding | None]:
    """Return the token and position embeddings. Llama has no position embedding."""
    base = model.base_model
    if hasattr(base, "wte"):
        return base.wte, base.wpe
    if hasattr(base, "embed_tokens"):
        return base.embed_tokens, None
    return base.embeddings.word_embeddings, base.embeddings.position_embeddings


def _matrices(model: Any, *parts: str) -> list[nn.Parameter]:
    """Return the parameters whose names contain one of the parts."""
    results = [p for name, p in model.named_parameters() if any(part in name for part in parts)]
    assert results, parts
    return results


def _silent_first_token(model: Any) -> None:
    """Give token 0 at position 0 an all-zero hidden state, so products with it are 0."""
    for name, parameter in model.named_parameters():
        if "bias" in name or "token_type" in name:
            parameter.zero_()
    for table in filter(None, _tables(model)):
        table.weight[0] = 0.0


def overflow_at_five(model: Any) -> None:
    """Overflow at position 5 or, without position embeddings, at all but a few token ids."""
    tokens, positions = _tables(model)
    table = tokens if positions is None else positions
    rows = slice(40, None, 3) if positions is None else slice(5, 6)
    table.weight[rows] = HUGE
    if positions is None:  # makes lengths and sums overflow, whatever the norms do
        for matrix in _matrices(model, "v_proj", "o_proj", "up_proj"):
            matrix.mul_(1e15)


def overflow_after_the_first(model: Any) -> None:
    """Make squares overflow at every position but 0, or for every token but 0."""
    tokens, positions = _tables(model)
    (positions or tokens).weight[1:] = 1e30


def overflow_in_scores(model: Any) -> None:
    """Overflow only in query-key products, except for token 0 at position 0."""
    _silent_first_token(model)
    for matrix in _matrices(model, "c_attn.weight", "q_proj", "k_proj", "query.w", "key.w"):
        width = matrix.shape[-1] * 2 // 3 if matrix.shape[0] * 3 == matrix.shape[-1] else None
        matrix[..., :width] *= 1e25


def overflow_in_logits(model: Any) -> None:
    """Overflow only in the product with the output matrix, except for token 0 at position 0."""
    _silent_first_token(model)
    names = ("ln_f.weight", "model.norm.weight", "cls.predictions.transform.LayerNorm.weight")
    _matrices(model, *names)[0].mul_(1e25)
    for matrix in {_tables(model)[0].weight, model.get_output_embeddings().weight}:
        matrix[1:] *= 1e15


def all_zero(model: Any) -> None:
    for parameter in model.parameters():
        parameter.zero_()


def all_equal(model: Any) -> None:
    for parameter in model.parameters():
        parameter.fill_(0.02)


def prefers_ids_without_a_token(model: Any) -> None:
    """Make ids that the tokenizer doesn't know the most likely."""
    output: Tensor = model.get_output_embeddings().weight
    output[WORDS:] *= 9.0


CHANGES: dict[str, Change] = {
    "overflow-at-five": overflow_at_five,
    "overflow-after-the-first": overflow_after_the_first,
    "overflow-in-scores": overflow_in_scores,
    "overflow-in-logits": overflow_in_logits,
    "all-zero": all_zero,
    "all-equal": all_equal,
    "padded-vocabulary": prefers_ids_without_a_token,
}
# config.json options that transformers reads and the core doesn't
CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2-eos-object": {"eos_token_id": {"a": 1}},
    "gpt2-eos-text": {"eos_token_id": "x"},
    "gpt2-eos-fraction": {"eos_token_id": 1.5},
    "gpt2-dtype": {"dtype": "float999"},
    "gpt2-text-config": {"text_config": {"hidden_size": 3}},
    "llama-pad-far-away": {"pad_token_id": 10**9},
}


def _nested_generation_config(folder: Path) -> None:
    text = '{"a":' * 900 + "1" + "}" * 900
    (folder / "generation_config.json").write_text(text)


def _index_without_metadata(folder: Path) -> None:
    from safetensors import safe_open

    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    file = "model-00001-of-00001.safetensors"
    with safe_open(folder / file, framework="pt") as weights:
        index = {"weight_map": dict.fromkeys(weights.keys(), file)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


# Files that transformers would read on its own. It never sees them, because it only gets what the
# core has read.
FILES: dict[str, Callable[[Path], None]] = {
    "gpt2-nested-generation-config": _nested_generation_config,
    "gpt2-index-without-metadata": _index_without_metadata,
}
NOT_FOR_TRANSFORMERS = tuple(CONFIGS)

NAMES = (
    *(f"{family}-{change}" for change in CHANGES for family in FAMILIES),
    *(f"{family}-{kind}" for kind in ("usual", "smallest") for family in FAMILIES),
    *(f"{family}-few-words" for family in FAMILIES),
    "gpt2-one-word",
    "llama-one-word",
    *NOT_FOR_TRANSFORMERS,
    *FILES,
)


def build(models: Path, name: str) -> Path:
    """Create the folder of a name in `NAMES`."""
    family, kind = name.split("-", 1)
    if kind in CHANGES:
        return save(models, name, family, CHANGES[kind])
    if kind == "smallest":
        return save(models, name, family, **SMALLEST[family])
    if kind == "few-words":
        return save(models, name, family, n_words=9)
    if kind == "one-word":
        return save(models, name, family, n_words=1)
    folder = save(models, name, family, config=CONFIGS.get(name))
    FILES.get(name, lambda _: None)(folder)
    return folder
