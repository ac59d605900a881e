"""Saves a core as a folder that both transformers and `pretrained.load` can load.

This is the inverse of `pretrained.weights`. The configuration is written and read back, so that a
core that transformers can't represent is rejected instead of being saved as a different model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from attention_core import Transformer, TransformerConfig
from attention_core.positions.scaling import DynamicScaling, LinearScaling
from attention_core.speed.int8 import Int8Transformer
from pretrained import checkpoint, weight_names
from pretrained.load import Pretrained
from pretrained.model_files import read_bytes
from pretrained.options import flag
from pretrained.rotary_reference import rope_parameters
from pretrained.sources import unchanged
from pretrained.tokenization.bounds import MAX_TOKENIZER_BYTES
from pretrained.weights import (
    PREFIXES,
    Checkpoint,
    parts_outside_core,
    same_numbers,
    transformer_config,
)

_BERT_GELUS = {"gelu": "gelu", "gelu_tanh": "gelu_new"}
_TOKEN_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")
_DECODER = "cls.predictions.decoder.weight"


def save(model: Transformer | Pretrained, folder: str | os.PathLike[str]) -> Path:
    """Save a model as config.json and model.safetensors, and return the folder.

    A `Pretrained` is saved with its tokenizer files, and with heads of its checkpoint that the core
    doesn't have, such as BERT's masked-word head. Load the folder with
    `AutoModelForCausalLM.from_pretrained`, or for BERT with `AutoModel` or `AutoModelForMaskedLM`.
    Existing files are replaced.
    Raises ValueError for an 8-bit core, or with the settings that transformers can't represent;
    FilesChanged if the model's files changed after it was loaded.

    >>> import tempfile
    >>> import pretrained
    >>> model = pretrained.load("gpt2-novels", device="cpu")
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = pretrained.save(model, f"{parent}/mine")
    ...     print(sorted(path.name for path in folder.iterdir()))
    ...     print(pretrained.load(folder, device="cpu").core.config == model.core.config)
    ['config.json', 'model.safetensors', 'tokenizer.json']
    True
    """
    core = model if isinstance(model, Transformer) else model.core
    if isinstance(core, Int8Transformer):
        raise ValueError("an 8-bit model can't be saved; save the original model instead")
    weights = core.state_dict()
    dtype = next(iter(weights.values())).dtype
    config = checkpoint_config(core.config) | {"dtype": str(dtype).removeprefix("torch.")}
    outside: dict[str, Tensor] = {}
    files: dict[str, bytes] = {}
    if isinstance(model, Pretrained):
        with unchanged(model.source):
            outside, files = _parts_outside_core(model), _tokenizer_files(model.folder)
        config |= _options_outside_core(model, outside)
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    state = checkpoint_state(core.config, weights, outside)
    save_file(state, path / checkpoint.WEIGHTS_FILE, metadata={"format": "pt"})
    files[checkpoint.CONFIG_FILE] = (json.dumps(config, indent=2) + "\n").encode()
    for name, content in files.items():
        (path / name).write_bytes(content)
    return path


def checkpoint_config(config: TransformerConfig) -> dict[str, Any]:
    """The config.json of a core.

    Raises ValueError with the settings that transformers can't represent.
    """
    if config.latent is not None:
        raise ValueError(f"transformers can't represent a core with latent={config.latent}")
    written = _WRITERS[_model_type(config)][0](config)
    ours, theirs = _explicit(config), _explicit(transformer_config(written))
    other = [
        f"{field.name}={getattr(ours, field.name)!r} (only {getattr(theirs, field.name)!r})"
        for field in fields(TransformerConfig)
        if getattr(ours, field.name) != getattr(theirs, field.name)
    ]
    if other:
        name = written["architectures"][0]
        raise ValueError(f"{name} in transformers doesn't support {', '.join(other)}")
    return written


def checkpoint_state(
    config: TransformerConfig, weights: Mapping[str, Tensor], outside: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Rename the weights of a core, `core.state_dict()`, to their names in transformers.

    outside: tensors of BERT's heads that the core doesn't have, by their names in transformers
    without the prefix "bert.".
    """
    model_type = _model_type(config)
    state = _WRITERS[model_type][1](config, weights) | dict(outside)
    heads = ("lm_head.", "cls.")
    has_head = model_type != "bert" or any(name.startswith(heads) for name in state)
    prefix = PREFIXES[model_type] if has_head else ""
    return {
        name if name.startswith(heads) else prefix + name: tensor.detach().contiguous()
        for name, tensor in state.items()
    }


def _model_type(config: TransformerConfig) -> str:
    """The closest model type; reading the configuration back shows whether it really fits."""
    if not config.causal:
        return "bert"
    return "llama" if config.positions == "rotary" else "gpt2"


def _explicit(config: TransformerConfig) -> TransformerConfig:
    """The same configuration with default sizes written out."""
    return replace(config, head_size=config.d_head, n_kv_heads=config.kv_heads)


def _parts_outside_core(model: Pretrained) -> dict[str, Tensor]:
    """BERT's pooler and heads, without a tied output matrix, which is the token embedding."""
    architecture = model.spec.architecture
    stored = Checkpoint(architecture, checkpoint.read_state(model.folder))
    parts = {name: stored.take(name) for name in parts_outside_core(architecture, stored.remaining)}
    if _DECODER in parts and flag(model.config, "tie_word_embeddings", True):
        embedding = stored.take("embeddings.word_embeddings.weight")
        if same_numbers(parts[_DECODER], embedding):
            del parts[_DECODER]
    return {name: tensor.to(model.dtype) for name, tensor in parts.items()}


def _options_outside_core(model: Pretrained, outside: Mapping[str, Tensor]) -> dict[str, Any]:
    """Options in a model's config.json for its special tokens and for heads outside the core."""
    names = list(_TOKEN_IDS)
    if outside:
        names += ["architectures", "tie_word_embeddings"]
    return {name: model.config[name] for name in names if name in model.config}


def _tokenizer_files(folder: Path) -> dict[str, bytes]:
    return {
        name: read_bytes(folder / name, MAX_TOKENIZER_BYTES)
        for name in checkpoint.TOKENIZER_FILES
        if (folder / name).exists()
    }


def _linear(stored: Tensor) -> Tensor:
    """A matrix of the core in the layout of `nn.Linear`, (d_out, d_in); a vector unchanged.

    The core uses the same layout. Only this function depends on that.
    """
    return stored


def _parts(config: TransformerConfig, weight: Tensor, n_parts: int) -> tuple[Tensor, ...]:
    """A weight or bias of the core, split into queries, keys and values if `n_parts` is 3."""
    linear = _linear(weight)
    return torch.split(linear, list(config.qkv_widths)) if n_parts == 3 else (linear,)


def _gpt2_config(config: TransformerConfig) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": config.vocab_size,
        "n_positions": config.context_length,
        "n_embd": config.d_model,
        "n_layer": config.n_layers,
        "n_head": config.n_heads,
        "n_inner": config.d_ff,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": config.norm_eps,
        "tie_word_embeddings": config.output == "tied",
        "bos_token_id": None,
        "eos_token_id": None,
    }


def _bert_config(config: TransformerConfig) -> dict[str, Any]:
    return {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.context_length,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.d_ff,
        "type_vocab_size": config.n_segments or 1,
        "hidden_act": _BERT_GELUS.get(config.activation, "gelu"),
        "layer_norm_eps": config.norm_eps,
        "pad_token_id": None,
    }


def _llama_config(config: TransformerConfig) -> dict[str, Any]:
    scaling, longest = config.rope_scaling, config.context_length
    if isinstance(scaling, LinearScaling):
        longest = round(longest / scaling.factor)
    elif isinstance(scaling, DynamicScaling):
        longest = scaling.trained_length
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": config.vocab_size,
        "max_position_embeddings": longest,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.d_head,
        "intermediate_size": config.d_ff,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm_eps,
        "rope_parameters": rope_parameters(scaling) | {"rope_theta": config.rope_theta},
        "attention_bias": config.attention_bias,
        "mlp_bias": config.mlp_bias,
        "tie_word_embeddings": config.output == "tied",
        "bos_token_id": None,
        "eos_token_id": None,
    }


def _tables(weights: Mapping[str, Tensor], embedding: str) -> dict[str, Tensor]:
    """The token embedding, and the output head unless they are tied."""
    output = weights["unembedding"].t()  # (C, V) -> (V, C)
    if "embedding" not in weights:
        return {embedding: output}
    return {embedding: weights["embedding"], "lm_head.weight": output}


def _gpt2_state(config: TransformerConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    state = _tables(weights, "wte.weight") | {"wpe.weight": weights["positions"]}
    for kind in ("weight", "bias"):
        state[f"ln_f.{kind}"] = weights[f"final_norm.{kind}"]
        for layer in range(config.n_layers):
            for ours, theirs in weight_names.GPT2_LAYER.items():
                linear = _linear(weights[f"blocks.{layer}.{ours}.{kind}"])
                state[f"h.{layer}.{theirs}.{kind}"] = linear.t()  # Conv1D: (d_in, d_out)
    return state


def _bert_state(config: TransformerConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    state = {
        "embeddings.word_embeddings.weight": weights["embedding"],
        "embeddings.position_embeddings.weight": weights["positions"],
        "embeddings.token_type_embeddings.weight": weights["segments"],
        "embeddings.LayerNorm.weight": weights["embedding_norm.weight"],
        "embeddings.LayerNorm.bias": weights["embedding_norm.bias"],
    }
    for layer in range(config.n_layers):
        theirs = f"encoder.layer.{layer}"
        norms, matrices = weight_names.BERT_NORMS, weight_names.BERT_MATRICES
        state |= _layer_state(config, weights, layer, theirs, norms, matrices)
    return state


def _llama_state(config: TransformerConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    state = _tables(weights, "embed_tokens.weight") | {"norm.weight": weights["final_norm.weight"]}
    for layer in range(config.n_layers):
        theirs = f"layers.{layer}"
        norms, matrices = weight_names.LLAMA_NORMS, weight_names.LLAMA_MATRICES
        state |= _layer_state(config, weights, layer, theirs, norms, matrices)
    return state


def _layer_state(
    config: TransformerConfig,
    weights: Mapping[str, Tensor],
    layer: int,
    theirs: str,
    norms: Mapping[str, str],
    matrices: Mapping[str, tuple[str, ...]],
) -> dict[str, Tensor]:
    """The weights and existing biases of a BERT or Llama layer."""
    state = {}
    sources = {ours: (name,) for ours, name in norms.items()} | dict(matrices)
    for ours, names in sources.items():
        for kind in ("weight", "bias"):
            weight = weights.get(f"blocks.{layer}.{ours}.{kind}")
            if weight is not None:
                parts = _parts(config, weight, len(names))
                for name, part in zip(names, parts, strict=True):
                    state[f"{theirs}.{name}.{kind}"] = part
    return state


# model_type -> functions that return its configuration, and its weights without the prefix
_WRITERS = {
    "gpt2": (_gpt2_config, _gpt2_state),
    "bert": (_bert_config, _bert_state),
    "llama": (_llama_config, _llama_state),
}
