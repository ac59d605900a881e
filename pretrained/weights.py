"""Converts the weights of GPT-2, BERT and Llama checkpoints to our core.

No tensor of a checkpoint is dropped silently. Each one is used, compared with the value that the
core computes instead, or named in an error. Only BERT's pooler and pre-training heads are left out,
because the core doesn't have them; `parts_outside_core` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, cast

import torch
from torch import Tensor

from attention_core import Transformer, TransformerConfig, bert_config, gpt2_config, llama_config
from attention_core.positions.scaling import plain_frequencies
from pretrained import weight_names
from pretrained.checkpoint import check_options
from pretrained.options import Config, flag, number, optional_size, size
from pretrained.rotary_options import LONGEST_CONTEXT, rotary_options

_GELUS: dict[str, Literal["gelu", "gelu_tanh"]] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}

# Limits above the sizes of any published model; larger sizes are rejected before a model is built.
LARGEST = {
    "d_model": 100_000,
    "n_layers": 10_000,
    "n_heads": 10_000,
    "d_head": 100_000,
    "d_ff": 1_000_000,
    "vocab_size": 10_000_000,
    "context_length": LONGEST_CONTEXT,
    "n_segments": 10_000,
}
# Supported dtypes of weights.
_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)

# Prefixes of weight names in transformers models that have a head.
PREFIXES = {"gpt2": "transformer.", "bert": "bert.", "llama": "model."}
# Names of the token embedding and the output head in checkpoints.
_EMBEDDINGS = {"gpt2": "wte.weight", "llama": "embed_tokens.weight"}
_HEAD = "lm_head.weight"

# Heads of BERT checkpoints that use the encoder's output.
_OUTSIDE_CORE = {"bert": r"pooler\..*|cls\..*"}
_LARGEST_MASKED_BIAS = -1e4  # all versions of GPT-2 checkpoints mask with this value or less


def transformer_config(hf_config: Config) -> TransformerConfig:
    """The core's configuration for the contents of a `config.json`.

    Raises: ValueError for an unsupported architecture or option, for a missing or invalid number,
    with the option's name, and for a size above `LARGEST`.
    """
    readers = {"gpt2": _gpt2_config, "bert": _bert_config, "llama": _llama_config}
    reader = _of(hf_config, readers)
    check_options(hf_config)
    config = cast(TransformerConfig, reader(hf_config))
    for name, largest in LARGEST.items():
        if getattr(config, name) > largest:
            raise ValueError(
                f"{name} is {getattr(config, name):,}, but must be at most {largest:,}"
            )
    return config


def config_of_state(hf_config: Config, state: Mapping[str, Tensor]) -> TransformerConfig:
    """The core's configuration for a checkpoint; tied matrices become separate if they differ.

    transformers does the same. Raises: the errors of `transformer_config`, and ValueError for a
    tensor that is stored twice with different values.
    """
    config = transformer_config(hf_config)
    keys = Checkpoint(hf_config["model_type"], state)
    tables = _EMBEDDINGS.get(hf_config["model_type"]), _HEAD
    if config.output != "tied" or not all(table in keys for table in tables):
        return config
    embedding, head = (keys.take(table) for table in tables if table)
    return config if same_numbers(embedding, head) else replace(config, output="separate")


def core_from_state_dict(hf_config: Config, state: Mapping[str, Tensor]) -> Transformer:
    """A `Transformer` in evaluation mode with the weights of a transformers state dict.

    If the output head (`lm_head`) differs from the token embedding, it becomes a separate matrix
    even if the configuration ties them; transformers does the same.

    Embeddings, positions and the weights of norms share memory with `state`: changing one in place
    changes the other, until the core is moved or cast. Tensors with a different layout in the core
    are copied: tied and output matrices (transposed), and the matrices of layers (queries, keys and
    values are joined, and GPT-2's are transposed).

    Raises: ValueError for keys that are missing, unknown or stored twice with different values,
    buffers that contradict the configuration, shapes that don't fit, weights that aren't finite
    floating-point numbers, or an unsupported configuration.
    """
    core, weights = _converted(hf_config, config_of_state(hf_config, state), state)
    for name, tensor in weights.items():
        _check_numbers(name, tensor)
    core.load_state_dict(weights, strict=True, assign=True)
    return core.requires_grad_(False).eval()


def check_tensors(
    hf_config: Config, state: Mapping[str, Tensor], shapes: Mapping[str, Tensor]
) -> TransformerConfig:
    """Check the names, shapes and dtypes of all tensors, and return the core's configuration.

    shapes: the tensors of `state` on the meta device. Only reads the values of tied matrices, so
    even a large checkpoint takes little time.
    Raises: ValueError for tensors that don't fit.
    """
    config = config_of_state(hf_config, state)
    _converted(hf_config, config, shapes)
    return config


def _converted(
    hf_config: Config, config: TransformerConfig, state: Mapping[str, Tensor]
) -> tuple[Transformer, dict[str, Tensor]]:
    """A core on the meta device, and its weights by name; errors as when loading a model."""
    if config.n_layers > len(state):
        raise ValueError(
            f"config.json gives {config.n_layers:,} layers, but the checkpoint only has "
            f"{len(state):,} tensors"
        )
    convert = _of(
        hf_config, {"gpt2": _gpt2_weights, "bert": _bert_weights, "llama": _llama_weights}
    )
    keys = Checkpoint(hf_config["model_type"], state)
    try:
        weights = convert(config, keys)
    except RuntimeError as error:  # raised by torch for tensors that can't be concatenated
        raise ValueError(f"the shapes of the checkpoint's tensors don't match: {error}") from error
    keys.check_consumed(hf_config["model_type"], config)
    with torch.device("meta"):  # don't allocate or initialize weights that are replaced anyway
        core = Transformer(config)
    for name, parameter in core.named_parameters():
        if name in weights and weights[name].shape != parameter.shape:
            raise ValueError(
                f"{name} must have shape {tuple(parameter.shape)}, "
                f"but the checkpoint has {tuple(weights[name].shape)}"
            )
    for name, tensor in weights.items():
        if tensor.dtype not in _DTYPES:
            raise ValueError(f"{name} has the unsupported dtype {tensor.dtype}")
    return core, weights


def parts_outside_core(model_type: str, keys: Iterable[str]) -> list[str]:
    """The tensors of a checkpoint that belong to heads the core doesn't have, sorted by name."""
    outside = _OUTSIDE_CORE.get(model_type)
    return sorted(key for key in keys if outside and re.fullmatch(outside, _plain(model_type, key)))


def same_numbers(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same values, even if their dtypes differ."""
    if a.is_meta or b.is_meta:  # they have no values, and are rejected when weights are checked
        return a.shape == b.shape
    return a.shape == b.shape and torch.equal(a, b.to(a.dtype)) and torch.equal(a.to(b.dtype), b)


def core_from_reference(hf_model: Any) -> Transformer:
    """A `Transformer` with the weights of a loaded transformers model.

    Accepts `GPT2LMHeadModel`, `BertModel` and `LlamaForCausalLM`. Memory is shared as in
    `core_from_state_dict`.
    Raises: the errors of `core_from_state_dict`, and ValueError for weights of different dtypes.
    """
    state = hf_model.state_dict()
    dtypes = {str(tensor.dtype) for tensor in state.values() if tensor.is_floating_point()}
    if len(dtypes) > 1:
        raise ValueError(
            f"the model's weights have the dtypes {', '.join(sorted(dtypes))}; convert them to a "
            "single dtype, for example with model.float()"
        )
    return core_from_state_dict(hf_model.config.to_dict(), state)


def _check_numbers(name: str, tensor: Tensor) -> None:
    if tensor.is_meta:
        raise ValueError(f"{name} is on the meta device and has no values")
    smallest, largest = torch.aminmax(tensor)  # NaN if any value is NaN
    if not (smallest.isfinite() and largest.isfinite()):
        raise ValueError(f"{name} contains infinite values or NaN")


class Checkpoint:
    """A state dict from which every tensor is taken once, by its name without a model prefix.

    Tensors are looked up when they are taken, so a state that reads from files needs little memory.
    Raises: ValueError if two spellings of a name have different values.
    """

    def __init__(self, model_type: str, state: Mapping[str, Tensor]) -> None:
        self._state = state
        self._keys: dict[str, str] = {}
        for key in state:
            name = _plain(model_type, key)
            if name in self._keys and not same_numbers(state[self._keys[name]], state[key]):
                raise ValueError(f"the checkpoint has {name!r} twice, with different values")
            self._keys[name] = key

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    @property
    def remaining(self) -> list[str]:
        """The names of tensors that haven't been taken, sorted."""
        return sorted(self._keys)

    def take(self, name: str) -> Tensor:
        """Take a tensor. Raises ValueError if it's missing or has already been taken."""
        if name not in self._keys:
            raise ValueError(f"the checkpoint has no weight {name!r}")
        return self._state[self._keys.pop(name)]

    def take_matrix(self, *keys: str) -> Tensor:
        """Take `nn.Linear` weights (d_out, d_in), concatenated to (sum of d_out, d_in)."""
        return torch.cat([self.take(f"{key}.weight") for key in keys])

    def take_biases(self, *keys: str) -> Tensor:
        """Take `nn.Linear` biases (d_out), concatenated to (sum of d_out)."""
        return torch.cat([self.take(f"{key}.bias") for key in keys])

    def take_tables(self, config: TransformerConfig, model_type: str) -> dict[str, Tensor]:
        """Take the token embedding and the output head, or one matrix for both if they are tied.

        If they are tied, the checkpoint needs only one of them, as in transformers.
        """
        embedding = _EMBEDDINGS[model_type]
        if config.output != "tied":
            if _HEAD not in self._keys:
                raise ValueError(
                    f"the checkpoint has no weight {_HEAD!r}; if the output head is the token "
                    "embedding, set tie_word_embeddings to true in config.json"
                )
            head = self.take(_HEAD).t().contiguous()
            return {"embedding": self.take(embedding), "unembedding": head}
        stored = [self.take(name) for name in (_HEAD, embedding) if name in self._keys]
        return {"unembedding": (stored or [self.take(embedding)])[0].t().contiguous()}

    def check_consumed(self, model_type: str, config: TransformerConfig) -> None:
        """Raise ValueError if unknown tensors remain, except computed buffers and other heads."""
        outside = parts_outside_core(model_type, self._keys)
        left = [
            name
            for name in self._keys.keys() - set(outside)
            if not _is_computed(model_type, name, self._state[self._keys[name]], config)
        ]
        if left:
            raise ValueError(
                f"the core doesn't have {len(left)} of the checkpoint's weights, for example "
                f"{min(left)!r}"
            )


def _is_computed(model_type: str, key: str, buffer: Tensor, config: TransformerConfig) -> bool:
    """Whether a tensor is a buffer of an old checkpoint with the values that the core computes."""
    for pattern, holds_it in _BUFFERS[model_type].items():
        if re.fullmatch(pattern, key):
            return buffer.is_meta or holds_it(buffer, config)
    return False


def _is_causal_mask(buffer: Tensor, config: TransformerConfig) -> bool:
    visible = buffer != 0
    square = (config.context_length, config.context_length)
    return buffer.shape[-2:] == square and torch.equal(visible, torch.ones_like(visible).tril())


def _hides_keys(buffer: Tensor, config: TransformerConfig) -> bool:
    return buffer.numel() == 1 and float(buffer) <= _LARGEST_MASKED_BIAS


def _counts_positions(buffer: Tensor, config: TransformerConfig) -> bool:
    positions = buffer.flatten()
    return len(positions) == config.context_length and torch.equal(
        positions.cpu(), torch.arange(len(positions), dtype=buffer.dtype)
    )


def _holds_rotary_frequencies(buffer: Tensor, config: TransformerConfig) -> bool:
    expected = plain_frequencies(config.d_rotary, config.rope_theta)
    if not buffer.is_floating_point() or buffer.shape != expected.shape:
        return False
    rounding = torch.finfo(buffer.dtype)  # the buffer may have been cast like the weights
    rtol, atol = 2 * rounding.eps, rounding.smallest_normal
    return torch.allclose(buffer.float().cpu(), expected, rtol=rtol, atol=atol)


# Buffers in old checkpoints: the causal mask and its fill value, positions, rotary frequencies.
_BUFFERS: dict[str, dict[str, Callable[[Tensor, TransformerConfig], bool]]] = {
    "gpt2": {
        r"h\.\d+\.attn\.bias": _is_causal_mask,
        r"h\.\d+\.attn\.masked_bias": _hides_keys,
    },
    "bert": {r"embeddings\.position_ids": _counts_positions},
    "llama": {r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq": _holds_rotary_frequencies},
}


def _plain(model_type: str, key: str) -> str:
    """Drop the prefix of a model with a head, and rename LayerNorm weights of 2018 checkpoints."""
    key = key.removeprefix(PREFIXES[model_type])
    return re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", key).replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )


def _of(hf_config: Config, table: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    model_type = hf_config.get("model_type")
    if not isinstance(model_type, str) or model_type not in table:
        raise ValueError(f"model_type must be one of {', '.join(table)}, not {model_type!r}")
    return table[model_type]


def _gpt2_config(hf: Config) -> TransformerConfig:
    return gpt2_config(
        d_model=size(hf, "n_embd"),
        n_layers=size(hf, "n_layer"),
        n_heads=size(hf, "n_head"),
        vocab_size=size(hf, "vocab_size"),
        context_length=size(hf, "n_positions"),
        d_ff=optional_size(hf, "n_inner"),
        norm_eps=number(hf, "layer_norm_epsilon", 1e-5),
        tied=flag(hf, "tie_word_embeddings", True),
    )


def _bert_config(hf: Config) -> TransformerConfig:
    return bert_config(
        d_model=size(hf, "hidden_size"),
        n_layers=size(hf, "num_hidden_layers"),
        n_heads=size(hf, "num_attention_heads"),
        d_ff=size(hf, "intermediate_size"),
        vocab_size=size(hf, "vocab_size"),
        context_length=size(hf, "max_position_embeddings"),
        n_segments=optional_size(hf, "type_vocab_size") or 2,
        norm_eps=number(hf, "layer_norm_eps", 1e-12),
        activation=_GELUS[hf.get("hidden_act", "gelu")],
    )


def _llama_config(hf: Config) -> TransformerConfig:
    n_heads = size(hf, "num_attention_heads")
    rotary = rotary_options(hf)
    return llama_config(
        vocab_size=size(hf, "vocab_size"),
        context_length=rotary.context_length,
        d_model=size(hf, "hidden_size"),
        n_layers=size(hf, "num_hidden_layers"),
        n_heads=n_heads,
        n_kv_heads=optional_size(hf, "num_key_value_heads") or n_heads,
        d_ff=size(hf, "intermediate_size"),
        head_size=optional_size(hf, "head_dim"),
        rope_theta=rotary.theta,
        rope_scaling=rotary.scaling,
        norm_eps=number(hf, "rms_norm_eps", 1e-6),
        attention_bias=flag(hf, "attention_bias"),
        mlp_bias=flag(hf, "mlp_bias"),
        tied=flag(hf, "tie_word_embeddings"),
    )


def _gpt2_weights(config: TransformerConfig, keys: Checkpoint) -> dict[str, Tensor]:
    """The weights of a GPT-2; its Conv1D matrices (d_in, d_out) are transposed."""
    weights = keys.take_tables(config, "gpt2") | {"positions": keys.take("wpe.weight")}
    names = {
        f"blocks.{i}.{ours}": f"h.{i}.{theirs}"
        for i in range(config.n_layers)
        for ours, theirs in weight_names.GPT2_LAYER.items()
    } | {"final_norm": "ln_f"}
    for ours, theirs in names.items():
        for kind in ("weight", "bias"):
            stored = keys.take(f"{theirs}.{kind}")
            weights[f"{ours}.{kind}"] = stored.t().contiguous() if stored.dim() == 2 else stored
    return weights


def _bert_weights(config: TransformerConfig, keys: Checkpoint) -> dict[str, Tensor]:
    weights = {
        "embedding": keys.take("embeddings.word_embeddings.weight"),
        "positions": keys.take("embeddings.position_embeddings.weight"),
        "segments": keys.take("embeddings.token_type_embeddings.weight"),
        "embedding_norm.weight": keys.take("embeddings.LayerNorm.weight"),
        "embedding_norm.bias": keys.take("embeddings.LayerNorm.bias"),
    }
    for layer in range(config.n_layers):
        ours, theirs = f"blocks.{layer}", f"encoder.layer.{layer}"
        for name, norm in weight_names.BERT_NORMS.items():
            for kind in ("weight", "bias"):
                weights[f"{ours}.{name}.{kind}"] = keys.take(f"{theirs}.{norm}.{kind}")
        for name, linears in weight_names.BERT_MATRICES.items():
            sources = [f"{theirs}.{linear}" for linear in linears]
            weights[f"{ours}.{name}.weight"] = keys.take_matrix(*sources)
            weights[f"{ours}.{name}.bias"] = keys.take_biases(*sources)
    return weights


def _llama_weights(config: TransformerConfig, keys: Checkpoint) -> dict[str, Tensor]:
    weights = keys.take_tables(config, "llama")
    weights["final_norm.weight"] = keys.take("norm.weight")
    for layer in range(config.n_layers):
        ours, theirs = f"blocks.{layer}", f"layers.{layer}"
        for name, norm in weight_names.LLAMA_NORMS.items():
            weights[f"{ours}.{name}.weight"] = keys.take(f"{theirs}.{norm}.weight")
        for name, linears in weight_names.LLAMA_MATRICES.items():
            sources = [f"{theirs}.{linear}" for linear in linears]
            weights[f"{ours}.{name}.weight"] = keys.take_matrix(*sources)
            has_bias = config.mlp_bias if name.startswith("mlp") else config.attention_bias
            if has_bias:
                weights[f"{ours}.{name}.bias"] = keys.take_biases(*sources)
    return weights
