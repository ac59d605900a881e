"""Weight maps: from the checkpoints of GPT-2, BERT and Llama onto the from-scratch core.

A checkpoint is taken apart key by key. A key that is missing, left over, or of the wrong shape is
an error; the few keys that are no weights of the core are listed by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

import torch
from torch import Tensor

from attention_core import Transformer, TransformerConfig, bert_config, gpt2_config, llama_config
from pretrained import weight_names
from pretrained.checkpoint import check_options
from pretrained.options import Config, flag, number, optional_size, size
from pretrained.rotary_options import LONGEST_CONTEXT, rotary_options

_GELUS: dict[str, Literal["gelu", "gelu_tanh"]] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}

# Larger than in any model that was published: such sizes are refused before anything is built.
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
# What weights are stored in; integers and truth values are no weights.
_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)

# Keys of checkpoints that hold no weight of the core: causal masks and rotary tables stored as
# buffers, position numbers, the pooler, and the heads for pre-training of BERT.
_IGNORED = {
    "gpt2": r"h\.\d+\.attn\.(bias|masked_bias)",
    "bert": r"embeddings\.position_ids|pooler\..*|cls\..*",
    "llama": r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq",
}


def transformer_config(hf_config: Config) -> TransformerConfig:
    """The core's configuration for the contents of a `config.json`.

    Raises: ValueError for an architecture or an option that the core does not build, for a number
    that is missing or none, with the option's name, and for a size over `LARGEST`.
    """
    readers = {"gpt2": _gpt2_config, "bert": _bert_config, "llama": _llama_config}
    reader = _of(hf_config, readers)
    check_options(hf_config)
    config = cast(TransformerConfig, reader(hf_config))
    for name, largest in LARGEST.items():
        if getattr(config, name) > largest:
            raise ValueError(f"{name} is {getattr(config, name):,}; at most {largest:,} is taken")
    return config


def core_from_state_dict(hf_config: Config, state: Mapping[str, Tensor]) -> Transformer:
    """A `Transformer` in evaluation mode with the weights of a transformers state dict.

    Tensors that the core stores as they come are shared with `state`, not copied: embeddings and
    positions, what belongs to norms, and all of GPT-2's layers. Changing one in place changes the
    other; moving or casting the core makes its own. Copied is what is stored otherwise here: tied
    and output matrices (transposed), and the matrices and biases of BERT's and Llama's layers
    (transposed, queries, keys and values side by side).

    Raises: ValueError for keys missing or left over, shapes that do not fit, weights that are no
    finite floating-point numbers, or an unsupported configuration.
    """
    config = transformer_config(hf_config)
    if config.n_layers > len(state):
        raise ValueError(
            f"config.json promises {config.n_layers:,} layers, and the checkpoint has only "
            f"{len(state):,} tensors"
        )
    convert = _of(
        hf_config, {"gpt2": _gpt2_weights, "bert": _bert_weights, "llama": _llama_weights}
    )
    keys = _Checkpoint(state)
    try:
        weights = convert(config, keys)
    except RuntimeError as error:  # torch's, of tensors that cannot stand side by side
        raise ValueError(f"the tensors of the checkpoint do not fit together: {error}") from error
    keys.check_consumed(_IGNORED[hf_config["model_type"]])
    with torch.device("meta"):  # no memory and no random numbers for weights that are replaced
        core = Transformer(config)
    for name, parameter in core.named_parameters():
        if name in weights and weights[name].shape != parameter.shape:
            raise ValueError(
                f"{name} needs shape {tuple(parameter.shape)}, "
                f"the checkpoint gives {tuple(weights[name].shape)}"
            )
    for name, tensor in weights.items():
        _check_numbers(name, tensor)
    core.load_state_dict(weights, strict=True, assign=True)
    return core.requires_grad_(False).eval()


def core_from_reference(hf_model: Any) -> Transformer:
    """A `Transformer` with the weights of a loaded transformers model.

    Takes `GPT2LMHeadModel`, `BertModel` and `LlamaForCausalLM`; same errors as
    `core_from_state_dict`, and memory shared in the same way.
    """
    return core_from_state_dict(hf_model.config.to_dict(), hf_model.state_dict())


def _check_numbers(name: str, tensor: Tensor) -> None:
    if tensor.dtype not in _DTYPES:
        raise ValueError(f"{name} is stored as {tensor.dtype}, which is no type of weights")
    smallest, largest = torch.aminmax(tensor)  # NaN if any number is
    if not (smallest.isfinite() and largest.isfinite()):
        raise ValueError(f"{name} holds numbers that are infinite or none (NaN)")


class _Checkpoint:
    """A state dict from which every key is taken once; prefixes of wrapping models are dropped."""

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        self._state = {_plain(key): tensor for key, tensor in state.items()}

    def take(self, key: str) -> Tensor:
        try:
            return self._state.pop(key)
        except KeyError:
            raise ValueError(f"the checkpoint has no weight {key!r}") from None

    def take_optional(self, key: str) -> Tensor | None:
        return self._state.pop(key, None)

    def take_matrix(self, *keys: str) -> Tensor:
        """`nn.Linear` weights (d_out, d_in), side by side as one (d_in, sum of d_out)."""
        return torch.cat([self.take(f"{key}.weight") for key in keys]).t().contiguous()

    def take_biases(self, *keys: str) -> Tensor:
        return torch.cat([self.take(f"{key}.bias") for key in keys])

    def check_consumed(self, ignored: str) -> None:
        left = [key for key in self._state if not re.fullmatch(ignored, key)]
        if left:
            raise ValueError(
                f"{len(left)} weights of the checkpoint have no place in the core, "
                f"the first is {left[0]!r}"
            )


def _plain(key: str) -> str:
    """Drop the prefix of a model with a head, and the LayerNorm names of 2018 checkpoints."""
    key = re.sub(r"^(transformer|bert|model)\.", "", key)
    return re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", key).replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )


def _of(hf_config: Config, table: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    model_type = hf_config.get("model_type")
    if not isinstance(model_type, str) or model_type not in table:
        raise ValueError(f"the core builds {', '.join(table)} models, not {model_type!r}")
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


def _gpt2_weights(config: TransformerConfig, keys: _Checkpoint) -> dict[str, Tensor]:
    """GPT-2's Conv1D layers already store (d_in, d_out): nothing to transpose but the embedding."""
    keys.take_optional("lm_head.weight")  # the token embedding once more
    weights = {
        "unembedding": keys.take("wte.weight").t().contiguous(),
        "positions": keys.take("wpe.weight"),
    }
    names = {
        f"blocks.{i}.{ours}": f"h.{i}.{theirs}"
        for i in range(config.n_layers)
        for ours, theirs in weight_names.GPT2_LAYER.items()
    } | {"final_norm": "ln_f"}
    for ours, theirs in names.items():
        for kind in ("weight", "bias"):
            weights[f"{ours}.{kind}"] = keys.take(f"{theirs}.{kind}")
    return weights


def _bert_weights(config: TransformerConfig, keys: _Checkpoint) -> dict[str, Tensor]:
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


def _llama_weights(config: TransformerConfig, keys: _Checkpoint) -> dict[str, Tensor]:
    embedding = keys.take("embed_tokens.weight")
    output = keys.take_optional("lm_head.weight")
    if config.output == "tied":
        weights = {"unembedding": embedding.t().contiguous()}
    elif output is None:
        raise ValueError("the checkpoint has no weight 'lm_head.weight' and does not tie it")
    else:
        weights = {"embedding": embedding, "unembedding": output.t().contiguous()}
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
