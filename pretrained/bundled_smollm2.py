"""Converts SmolLM2's bundled GGUF file once into a folder with config and safetensors.

The package has llama.cpp's format: layer matrices in Q4_1, the embedding in Q8_0, norms in float32.
The dequantized values (scale times integer plus offset) aren't exact in float16, so the folder has
float32 weights (0.54 GB). They match what transformers reads from the GGUF bit for bit.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pretrained.checkpoint import CONFIG_FILE, WEIGHTS_FILE
from pretrained.model_files import open_file
from pretrained.sealed_folder import sealed_folder, sha256

if TYPE_CHECKING:
    import numpy as np
    from gguf import GGUFReader
    from numpy.typing import NDArray

# Part of the cache key: increase it when the output of the conversion below changes.
CONVERTER = 1

_TOP_LEVEL = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_IN_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_CONTROL = 3  # gguf.TokenType.CONTROL: a special token


def converted_folder(package: Path) -> Path:
    """The folder with the converted model; converts it first (about 6 s) if necessary.

    package: the folder with the GGUF file. The result is stored in the user's cache under the hash
    of the GGUF. Raises ValueError if the GGUF is missing or isn't the expected one, and OSError if
    there isn't enough disk space for 0.6 GB.
    """
    gguf_file = next(iter(sorted(package.glob("*.gguf"))), None)
    if gguf_file is None:
        raise ValueError(f"{package.name} has no GGUF file.")
    digest = sha256(gguf_file)

    def build(folder: Path) -> None:
        with TemporaryDirectory(dir=folder) as own:
            copy = Path(own) / gguf_file.name  # a private copy, because the reader memory-maps it
            with open_file(gguf_file) as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target)
            if sha256(copy) != digest:
                raise ValueError(f"{gguf_file.name} changed while it was being read. Try again.")
            convert(copy, folder)

    return sealed_folder(f"smollm2-135m-instruct-v{CONVERTER}-{digest[:16]}", build)


def convert(gguf_file: Path, folder: Path) -> None:
    """Write config.json, model.safetensors and tokenizer.json for a Llama-style GGUF.

    Raises ValueError if the file is damaged or of a different kind, and OSError if the folder can't
    be written.
    """
    from gguf import GGUFReader
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        reader = GGUFReader(gguf_file)
        config = hf_config(reader)
        state = hf_state(reader, config)
        tokenizer = _tokenizer_json(reader)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"{gguf_file.name} is damaged or isn't a Llama-style GGUF: {error}"
        ) from error
    (folder / CONFIG_FILE).write_text(json.dumps(config, indent=1), encoding="utf-8")
    (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
    try:
        save_file(state, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    except SafetensorError as error:  # safetensors raises this even if the disk is full
        raise OSError(f"{WEIGHTS_FILE} can't be written: {error}") from error


def hf_config(reader: GGUFReader) -> dict[str, Any]:
    """The GGUF's settings under their names in a transformers config.json."""
    if _field(reader, "general.architecture") != "llama":
        raise ValueError("the architecture is not llama")
    n_heads = _field(reader, "llama.attention.head_count")
    theta = _field(reader, "llama.rope.freq_base")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": _field(reader, "tokenizer.ggml.bos_token_id"),
        "eos_token_id": _field(reader, "tokenizer.ggml.eos_token_id"),
        "pad_token_id": _field(reader, "tokenizer.ggml.padding_token_id"),
        "head_dim": _field(reader, "llama.embedding_length") // n_heads,
        "hidden_act": "silu",
        "hidden_size": _field(reader, "llama.embedding_length"),
        "initializer_range": 0.02,
        "intermediate_size": _field(reader, "llama.feed_forward_length"),
        "max_position_embeddings": _field(reader, "llama.context_length"),
        "mlp_bias": False,
        "num_attention_heads": n_heads,
        "num_hidden_layers": _field(reader, "llama.block_count"),
        "num_key_value_heads": _field(reader, "llama.attention.head_count_kv"),
        "rms_norm_eps": _field(reader, "llama.attention.layer_norm_rms_epsilon"),
        "rope_theta": theta,
        "rope_parameters": {"rope_theta": theta, "rope_type": "default"},
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in reader.tensors),
        "dtype": "float32",
        "use_cache": True,
        "vocab_size": _field(reader, "llama.vocab_size"),
    }


def hf_state(reader: GGUFReader, config: dict[str, Any]) -> dict[str, NDArray[np.float32]]:
    """Dequantized float32 tensors with the names and row order of transformers."""
    import numpy as np
    from gguf.quants import dequantize

    state = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        parts = tensor.name.split(".")
        if tensor.name in _TOP_LEVEL:
            name = _TOP_LEVEL[tensor.name]
        else:
            _, layer, part, suffix = parts
            name = f"model.layers.{layer}.{_IN_BLOCK[part]}.{suffix}"
            if part == "attn_q":
                values = unpermute(values, config["num_attention_heads"])
            elif part == "attn_k":
                values = unpermute(values, config["num_key_value_heads"])
        state[name] = np.ascontiguousarray(values, dtype=np.float32)
    return state


def unpermute(weight: NDArray[np.float32], n_heads: int) -> NDArray[np.float32]:
    """Reorder the rows of a q or k matrix (H * D, C) from llama.cpp's order to transformers'.

    llama.cpp rotates adjacent rows (2i, 2i + 1); transformers rotates row i with row i + D / 2.
    """
    width = weight.shape[1]
    pairs = weight.reshape(n_heads, -1, 2, width)  # (H*D, C) -> (H, D/2, 2, C)
    return pairs.swapaxes(1, 2).reshape(-1, width)  # (H, 2, D/2, C) -> (H*D, C)


def _tokenizer_json(reader: GGUFReader) -> str:
    """The GGUF's byte-level BPE as a tokenizer.json."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    kind = (_field(reader, "tokenizer.ggml.model"), _field(reader, "tokenizer.ggml.pre"))
    if kind != ("gpt2", "smollm"):
        raise ValueError(f"the tokenizer is {kind}, not ('gpt2', 'smollm')")
    words = _field(reader, "tokenizer.ggml.tokens")
    types = _field(reader, "tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in _field(reader, "tokenizer.ggml.merges")]
    vocabulary = {word: index for index, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    # "smollm" splits numbers into digits before GPT-2's pattern is applied.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [w for w, t in zip(words, types, strict=True) if t == _CONTROL]
    tokenizer.add_special_tokens([AddedToken(w, normalized=False, special=True) for w in special])
    return str(tokenizer.to_str())


def _field(reader: GGUFReader, name: str) -> Any:
    """A metadata value; raises KeyError with its name if it's missing."""
    return reader.fields[name].contents()
