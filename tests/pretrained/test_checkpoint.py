"""Untrusted model folders: what is read, what is rejected, and the error messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from pretrained import checkpoint

GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}


def write_config(folder: Path, config: Any) -> None:
    (folder / "config.json").write_text(json.dumps(config))


def write_shards(folder: Path, weight_map: dict[str, str]) -> None:
    for name in set(weight_map.values()):
        keys = [key for key, value in weight_map.items() if value == name]
        save_file({key: torch.full((2, 3), float(len(key))) for key in keys}, folder / name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({"model_type": "t5"}, "'t5'"),
        ({}, "model_type"),
        ({"model_type": ["gpt2"]}, "gpt2"),
        ({"model_type": "gpt2", "architectures": ["EvilModel"]}, "EvilModel"),
        ({"model_type": "gpt2", "architectures": "GPT2"}, "list"),
        ({**GPT2, "auto_map": {"AutoModel": "evil.py"}}, "auto_map|never run"),
        ({**GPT2, "quantization_config": {"bits": 4}}, "Quantized"),
        ({**GPT2, "activation_function": "relu"}, "activation_function='relu'"),
        ({"model_type": "llama", "rope_scaling": {"rope_type": "longrope"}}, "'longrope'"),
        ({"model_type": "llama", "rope_scaling": {"type": "su"}}, "'su'"),
        ([GPT2], "JSON object"),
    ],
)
def test_unsupported_configurations(tmp_path: Path, config: Any, names: str) -> None:
    write_config(tmp_path, config)
    with pytest.raises(ValueError, match=names):
        checkpoint.read_config(tmp_path)


@pytest.mark.parametrize(
    "raw", [None, b"{", b"\xff\xfe\x00", b"[" * 200_000, b" " * (checkpoint.MAX_CONFIG_BYTES + 1)]
)
def test_damaged_configurations(tmp_path: Path, raw: bytes | None) -> None:
    if raw is not None:
        (tmp_path / "config.json").write_bytes(raw)
    with pytest.raises(ValueError, match=r"config\.json"):
        checkpoint.read_config(tmp_path)


def test_shards(tmp_path: Path) -> None:
    first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    write_shards(tmp_path, {"a": first, "bb": second, "ccc": first})
    assert {k: v[0, 0].item() for k, v in checkpoint.read_state(tmp_path).items()} == {
        "a": 1.0,
        "bb": 2.0,
        "ccc": 3.0,
    }
    (tmp_path / second).unlink()
    with pytest.raises(ValueError, match="missing 1 of 2 shards"):
        checkpoint.read_state(tmp_path)


@pytest.mark.parametrize(
    "name",
    ["../secret.safetensors", "/etc/x.safetensors", "a/b.safetensors", "x.bin", "", 7, "a\0b"],
)
def test_index_cannot_point_outside_the_folder(tmp_path: Path, name: Any) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    save_file({"a": torch.zeros(1)}, tmp_path / "secret.safetensors")
    index = {"weight_map": {"a": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="valid shard name"):
        checkpoint.read_state(folder)


def test_rejects_pickled_weights(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x02 a pickle")
    with pytest.raises(ValueError, match="pickled weights.*save_pretrained"):
        checkpoint.read_state(tmp_path)


def test_missing_weights(tmp_path: Path) -> None:
    write_config(tmp_path, GPT2)
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        checkpoint.read_state(tmp_path)
    assert not checkpoint.is_complete(tmp_path)


@pytest.mark.parametrize("keep", [0, 40, -1])
def test_truncated_weights(tmp_path: Path, keep: int) -> None:
    file = tmp_path / "model.safetensors"
    save_file({"a": torch.zeros(50), "b": torch.zeros(50)}, file)
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ValueError, match="truncated or damaged"):
        checkpoint.read_state(tmp_path)
    with pytest.raises(ValueError, match="truncated or damaged"):
        checkpoint.read_header(file)


ENTRY = {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}


def write_header(file: Path, header: bytes) -> None:
    """Write a header and the 8 data bytes of ENTRY."""
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))


@pytest.mark.parametrize(
    "header",
    [
        b"[1]",
        b"{",
        b'{"a": 3}',
        b'{"a": null}',
        b'{"a": {"data_offsets": [0, 8]}}',
        *(
            json.dumps({"a": {**ENTRY, key: value}}).encode()
            for key, value in [
                ("dtype", 4), ("shape", ["1"]), ("shape", [-1, 2]), ("shape", None),
                ("data_offsets", "ab"), ("data_offsets", [8]), ("data_offsets", [False, 8]),
                ("data_offsets", [9, 8]), ("data_offsets", [0, 8.0]), ("data_offsets", [0, 7]),
            ]
        ),
    ],
)  # fmt: skip
def test_damaged_headers(tmp_path: Path, header: bytes) -> None:
    file = tmp_path / "model.safetensors"
    write_header(file, header)
    with pytest.raises(ValueError, match="truncated or damaged"):
        checkpoint.read_header(file)


@pytest.mark.parametrize(
    "header",
    [
        {"a": ENTRY, "b": ENTRY},
        {"a": {**ENTRY, "shape": [1], "data_offsets": [0, 4]}, "b": {**ENTRY, "shape": [1]}},
        {"a": {**ENTRY, "shape": [1], "data_offsets": [4, 8]}},
        {"a": {**ENTRY, "shape": [1, 3]}},
        {"a": {**ENTRY, "shape": [2**62, 2**62]}},
        {"a": ENTRY, "b": {**ENTRY, "shape": [0, 2**62, 2**62], "data_offsets": [8, 8]}},
        {"a": ENTRY, "b": {**ENTRY, "shape": [0, 2**63], "data_offsets": [8, 8]}},
        {"a": {**ENTRY, "dtype": "F31"}},
        {"a": {**ENTRY, "dtype": "F4", "shape": [16]}},
        {"a": {**ENTRY, "shape": [1] * 100 + [2]}},
    ],
    ids=lambda header: json.dumps(header)[:60],
)
def test_rejects_tensors_that_do_not_match_their_file(
    tmp_path: Path, header: dict[str, Any]
) -> None:
    """Reject overlaps, gaps, lengths that don't match the shape, and unknown dtypes."""
    write_header(tmp_path / "model.safetensors", json.dumps(header).encode())
    with pytest.raises(ValueError, match="truncated or damaged|unsupported dtype"):
        dict(checkpoint.read_state(tmp_path))


def test_rejects_shards_that_repeat_a_tensor(tmp_path: Path) -> None:
    write_shards(tmp_path, {"a": "x.safetensors", "b": "y.safetensors"})
    save_file({"a": torch.zeros(1), "b": torch.zeros(1)}, tmp_path / "y.safetensors")
    with pytest.raises(ValueError, match="the tensor 'a'"):
        checkpoint.read_state(tmp_path)
