"""Reads the configuration and the safetensors weights of a model folder.

The folder may be untrusted. So sizes are limited, only listed architectures are accepted, an index
can't name files outside the folder, and pickled weights are never opened.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pretrained.model_files import open_file, read_bytes

if TYPE_CHECKING:
    from torch import Tensor

# model_type -> the classes whose weights the core can load.
ARCHITECTURES: dict[str, frozenset[str]] = {
    "gpt2": frozenset({"GPT2LMHeadModel", "GPT2Model"}),
    "bert": frozenset({"BertModel", "BertForMaskedLM", "BertForPreTraining"}),
    "llama": frozenset({"LlamaForCausalLM", "LlamaModel"}),
}

# model_type -> option -> the supported values; the first is the default if the option is missing.
# The parity tests are generated from this table, and compare each value with transformers.
OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "gpt2": {
        "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "reorder_and_upcast_attn": (False, True),
        "add_cross_attention": (False,),
        "tie_word_embeddings": (True, False),
    },
    "bert": {
        "hidden_act": ("gelu", "gelu_new", "gelu_pytorch_tanh"),
        "position_embedding_type": ("absolute",),
        "is_decoder": (False,),
        "add_cross_attention": (False,),
        "tie_word_embeddings": (True, False),
    },
    "llama": {
        "hidden_act": ("silu",),
        "attention_bias": (False, True),
        "mlp_bias": (False, True),
        "tie_word_embeddings": (False, True),
        "partial_rotary_factor": (1.0, None),
    },
}

# Values that compute the same as an earlier value of the option, up to rounding: (option, value).
ROUNDING_ONLY: frozenset[tuple[str, Any]] = frozenset(
    {
        ("activation_function", "gelu_pytorch_tanh"),  # the formula of gelu_new as one operation
        ("hidden_act", "gelu_pytorch_tanh"),
        ("reorder_and_upcast_attn", True),  # scores in float32, which only matters in 16 bits
        ("partial_rotary_factor", None),
    }
)

# model_type -> alternative names of the same option.
ALIASES: dict[str, tuple[tuple[str, ...], ...]] = {
    "gpt2": (
        ("n_embd", "hidden_size"),
        ("n_layer", "num_hidden_layers"),
        ("n_head", "num_attention_heads"),
        ("n_positions", "max_position_embeddings", "n_ctx"),
    ),
    "bert": (),
    "llama": (),
}

# Supported scalings of rotary positions; "default" means no scaling.
ROPE_KINDS = ("default", "linear", "dynamic", "yarn", "llama3")

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
)

# Dtypes of weights, and of buffers in old checkpoints, by their safetensors names.
_TORCH_NAMES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}

_MAX_DIMENSIONS = 8  # of a stored tensor: weights have two, and buffers at most four
MAX_CONFIG_BYTES = 1_000_000
MAX_INDEX_BYTES = 20_000_000
_SHARD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.safetensors")
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack")


def read_json(path: Path, max_bytes: int) -> dict[str, Any]:
    """A JSON object from a file of at most `max_bytes`.

    Raises ValueError if the file is missing, not a regular file, too large, not JSON or not an
    object.
    """
    return json_object(read_bytes(path, max_bytes), max_bytes, path.name)


def json_object(raw: bytes, max_bytes: int, name: str) -> dict[str, Any]:
    """Parse a JSON object; name: the source of the bytes, for error messages.

    Raises ValueError if there are more than `max_bytes`, or if they aren't JSON or not an object.
    Like transformers, it also rejects a byte order mark.
    """
    if len(raw) > max_bytes:
        raise ValueError(f"{name} is larger than the limit of {max_bytes:,} bytes.")
    if raw.startswith(codecs.BOM_UTF8):
        raise ValueError(f"{name} starts with a byte order mark. Save it as UTF-8 without one.")
    try:
        value = json.loads(raw, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} isn't valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ValueError(f"{name} must contain a JSON object.")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object and reject repeated keys, because `json` would silently use the last."""
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"it contains {repeated!r} twice; remove one of them")
    return value


def check_config(config: Mapping[str, Any]) -> None:
    """Raise ValueError unless the core supports the architecture and its options."""
    for obstacle in obstacles(config):
        raise ValueError(obstacle)


def check_options(config: Mapping[str, Any]) -> None:
    """Raise ValueError if the core doesn't support an option of a supported architecture."""
    for obstacle in _unbuilt_options(config):
        raise ValueError(obstacle)


def obstacles(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for every reason why the core can't load a model with this config.json.

    Numbers aren't checked here but when they are read (`pretrained.weights.transformer_config`).
    """
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or model_type not in ARCHITECTURES:
        known = ", ".join(sorted(ARCHITECTURES))
        if model_type is None:
            yield f"model_type is missing; supported types are {known}."
        else:
            yield f"Model type {model_type!r} isn't supported; supported types are {known}."
        return
    architectures = config.get("architectures") or []
    allowed = ARCHITECTURES[model_type]
    if not isinstance(architectures, list) or not all(isinstance(a, str) for a in architectures):
        yield "'architectures' in config.json must be a list of names."
    elif architectures and not allowed.intersection(architectures):
        yield (
            f"Architecture {', '.join(architectures)} isn't supported; supported architectures of "
            f"type {model_type} are {', '.join(sorted(allowed))}."
        )
    if config.get("auto_map"):
        yield "The model needs custom code ('auto_map'), which this site never runs."
    if config.get("quantization_config"):
        yield "Quantized checkpoints aren't supported; use the unquantized weights."
    yield from _unbuilt_options(config)


def _unbuilt_options(config: Mapping[str, Any]) -> Iterator[str]:
    model_type = config["model_type"]
    for option, allowed in OPTIONS[model_type].items():
        value = config.get(option, allowed[0])
        if value not in allowed:
            supported = " or ".join(map(repr, allowed))
            yield f"The core doesn't support {option}={value!r}, only {supported}."
    for names in ALIASES[model_type]:
        yield from _contradictions({name: config.get(name) for name in names})
    if model_type == "llama":
        table = rope_table(config)
        if rope_kind(table) not in ROPE_KINDS:
            supported = ", ".join(ROPE_KINDS)
            yield f"The core doesn't support rope_type={rope_kind(table)!r}, only {supported}."
        if table.get("partial_rotary_factor") not in (1.0, None):
            part = table["partial_rotary_factor"]
            yield f"The core doesn't support partial_rotary_factor={part!r}, only 1.0."
        yield from _rope_contradictions(config)


def _rope_contradictions(config: Mapping[str, Any]) -> Iterator[str]:
    """Messages about rotary options that a Llama configuration sets to two different values."""
    older, newer = (
        {"rope_type" if name == "type" else name: value for name, value in table.items()}
        for table in _rope_tables(config)
    )
    if older and newer:
        for option in sorted(older.keys() | newer.keys()):
            if older.get(option) != newer.get(option):
                yield (
                    f"config.json gives {option}={older.get(option)!r} in 'rope_scaling' and "
                    f"{newer.get(option)!r} in 'rope_parameters'. Keep one of the two tables."
                )
    table = rope_table(config)
    yield from _contradictions({name: table.get(name) for name in ("rope_type", "type")})
    for option in ("rope_theta", "original_max_position_embeddings", "partial_rotary_factor"):
        name, inside = option, f"{option} of the rotary positions"
        yield from _contradictions({name: config.get(option), inside: table.get(option)})


def _contradictions(stated: Mapping[str, Any]) -> Iterator[str]:
    """A message if names of the same option have different values; None counts as missing."""
    values = {name: value for name, value in stated.items() if value is not None}
    if any(value != other for value in values.values() for other in values.values()):
        pairs = " and ".join(f"{name}={value!r}" for name, value in values.items())
        yield f"config.json gives {pairs}, which are the same option. Keep the correct one."


def rope_table(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The rotary options of a Llama configuration; may be empty.

    Raises ValueError if `rope_scaling` or `rope_parameters` isn't a table.
    """
    older, newer = _rope_tables(config)
    return older or newer


def _rope_tables(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The `rope_scaling` of older files and the `rope_parameters` of transformers 5."""
    tables: list[Mapping[str, Any]] = []
    for option in ("rope_scaling", "rope_parameters"):
        table = config.get(option)
        if table is not None and not isinstance(table, Mapping):
            raise ValueError(f"{option!r} must be a table of options, not {table!r}.")
        tables.append(table or {})
    return tables[0], tables[1]


def rope_kind(table: Mapping[str, Any]) -> Any:
    """The kind of scaling, "default" for none. Files from before 2024 call the option "type"."""
    return table.get("rope_type") or table.get("type") or "default"


def read_config(path: Path) -> dict[str, Any]:
    """The folder's config.json, after checking that the core supports it.

    Raises ValueError if it's missing, malformed or unsupported.
    """
    config = read_json(path / CONFIG_FILE, MAX_CONFIG_BYTES)
    check_config(config)
    return config


def weight_files(path: Path) -> list[Path]:
    """The folder's safetensors files: a single one, or the shards in its index.

    Only reads the index. Raises ValueError if there are no files, if a shard is missing, or if the
    index names a file outside the folder.
    """
    single = path / WEIGHTS_FILE
    if single.is_file():
        return [single]
    if (path / INDEX_FILE).is_file():
        return [path / name for name in _shard_names(path)]
    if any(next(path.glob(pattern), None) for pattern in _PICKLES):
        raise ValueError(
            f"{path.name} only has pickled weights, which could run code when opened. If you trust "
            "them, convert them once: AutoModel.from_pretrained(folder).save_pretrained(folder) "
            "writes model.safetensors."
        )
    raise ValueError(f"{path.name} has no {WEIGHTS_FILE}.")


def is_complete(path: Path) -> bool:
    """Whether the folder has a supported configuration and all its weight files."""
    try:
        read_config(path)
        weight_files(path)
    except ValueError:
        return False
    return True


class _StoredTensors(Mapping[str, "Tensor"]):
    """The tensors of safetensors files by name, on the CPU, in their stored dtypes.

    A tensor is read on every access and isn't cached. We don't use the library's own readers
    because they memory-map the file: then weights would change if the file is rewritten, and the
    process would crash if the file is truncated.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._entries: dict[str, tuple[Path, int, dict[str, Any]]] = {}
        self._opened: tuple[Path, BufferedReader] | None = None  # only one shard at a time
        for file in files:
            header, data_start = _read_header(file)
            twice = self._entries.keys() & header.keys()
            if twice:
                raise ValueError(
                    f"{file.name} has the tensor {min(twice)!r}, which another shard already has."
                )
            self._entries |= {name: (file, data_start, entry) for name, entry in header.items()}

    def __getitem__(self, name: str) -> Tensor:
        import torch

        file, data_start, entry = self._entries[name]
        try:
            tensor = _empty(name, entry)
            handle = self._open(file)
            handle.seek(data_start + entry["data_offsets"][0])
            n_read = handle.readinto(tensor.reshape(-1).view(torch.uint8).numpy().data)
        except (OSError, RuntimeError, TypeError) as error:
            # torch raises its own errors for shapes that are too large
            raise ValueError(_damaged_error(file, str(error).partition("\n")[0])) from error
        if n_read != tensor.nbytes:
            raise ValueError(_damaged_error(file, f"{name} has {n_read} of {tensor.nbytes} bytes"))
        return tensor

    def _open(self, file: Path) -> BufferedReader:
        if self._opened is None or self._opened[0] != file:
            self._opened = file, open_file(file)
        return self._opened[1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _empty(name: str, entry: Mapping[str, Any], device: str = "cpu") -> Tensor:
    """An empty tensor for a header entry. Raises ValueError for an unknown dtype."""
    import torch

    dtype = getattr(torch, _TORCH_NAMES.get(entry["dtype"], ""), None)
    if dtype is None:
        raise ValueError(f"{name} has the unsupported dtype {entry['dtype']}.")
    return torch.empty(entry["shape"], dtype=dtype, device=device)


def read_shapes(path: Path) -> dict[str, Tensor]:
    """The folder's tensors on the meta device: names, shapes and dtypes without values.

    Raises ValueError like `read_state`.
    """
    headers = [read_header(file) for file in weight_files(path)]
    entries = [item for header in headers for item in header.items()]
    try:
        return {name: _empty(name, entry, "meta") for name, entry in entries}
    except (RuntimeError, TypeError) as error:  # raised by torch for sizes that are too large
        raise ValueError(f"the shape of a tensor is too large: {error}") from error


def read_state(path: Path) -> Mapping[str, Tensor]:
    """All tensors of the folder's safetensors files by name, on the CPU, in their stored dtypes.

    A tensor is read when it's accessed, so only tensors in use take up memory.
    Raises ValueError if files are missing, truncated or malformed, or if two shards contain the
    same name. Accessing a tensor also raises ValueError if its file was damaged in the meantime.
    """
    return _StoredTensors(weight_files(path))


def tensor_names(path: Path) -> set[str]:
    """The names of the folder's tensors, from the file headers.

    Raises ValueError if a header is damaged.
    """
    return set(read_state(path))


def read_header(file: Path) -> dict[str, Any]:
    """A safetensors header, checked against the file's length: name -> dtype, shape, offsets.

    Doesn't need torch. Raises ValueError if the file is truncated or not a regular file, or if its
    header is malformed.
    """
    return _read_header(file)[0]


def _read_header(file: Path) -> tuple[dict[str, Any], int]:
    """The header, and the position of the first byte after it, where offsets start."""
    try:
        with open_file(file) as handle:
            size = os.fstat(handle.fileno()).st_size
            n_header = int.from_bytes(handle.read(8), "little")
            if n_header > min(size, 100_000_000):
                raise ValueError(_damaged_error(file))
            header = json.loads(handle.read(n_header), object_pairs_hook=_without_repeats)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(_damaged_error(file)) from error
    if not isinstance(header, dict):
        raise ValueError(_damaged_error(file))
    header.pop("__metadata__", None)
    if not all(_is_entry(entry) for entry in header.values()):
        raise ValueError(_damaged_error(file))
    # the tensors must be contiguous and end where the file ends
    end = 0
    for begin, next_end in sorted(entry["data_offsets"] for entry in header.values()):
        if begin != end:
            raise ValueError(_damaged_error(file))
        end = next_end
    if 8 + n_header + end != size:
        raise ValueError(_damaged_error(file))
    return header, 8 + n_header


def _damaged_error(file: Path, reason: str = "") -> str:
    detail = f" ({reason})" if reason else ""
    return f"{file.name} is truncated or damaged{detail}; download or convert it again."


def _is_entry(entry: Any) -> bool:
    """Whether a header entry has a dtype, a shape, and the number of bytes that they require."""
    if not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str):
        return False
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2:
        return False
    if len(shape) > _MAX_DIMENSIONS:
        return False
    numbers = [*shape, *offsets]
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in numbers):
        return False
    n_bytes, bits = offsets[1] - offsets[0], re.search(r"\d+", entry["dtype"])
    item_bits = 8 if bits is None else int(bits.group())  # "BOOL" contains no number
    return bool(n_bytes >= 0 and n_bytes * 8 == math.prod(shape) * item_bits)


def _shard_names(path: Path) -> list[str]:
    """The file names in the index, after checking that each is a plain name of an existing file."""
    weight_map = read_json(path / INDEX_FILE, MAX_INDEX_BYTES).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ValueError(f"{INDEX_FILE} has no 'weight_map'.")
    values = list(weight_map.values())
    for name in values:
        if not isinstance(name, str) or not _SHARD_NAME.fullmatch(name):
            raise ValueError(f"{INDEX_FILE} names {name!r}, which isn't a valid shard name.")
    names = sorted(set(values))
    missing = [name for name in names if not (path / name).is_file()]
    if missing:
        raise ValueError(
            f"{path.name} is missing {len(missing)} of {len(names)} shards, for example "
            f"{missing[0]}. Download the model again."
        )
    return names
