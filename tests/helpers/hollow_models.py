"""Create model folders that claim a size without using disk space."""

import json
from pathlib import Path

CONFIG = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "vocab_size": 50257,
    "n_positions": 1024,
    "n_embd": 1024,
    "n_layer": 24,
    "n_head": 16,
}


def hollow_model(folder: Path, n_numbers: int, kind: str = "F16", bytes_of_each: int = 2) -> Path:
    """Create a GPT-2 configuration with one tensor of `n_numbers` zeros.

    The file has its full length but is almost entirely a hole (a sparse file).
    """
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    n_bytes = n_numbers * bytes_of_each
    entry = {"dtype": kind, "shape": [n_numbers], "data_offsets": [0, n_bytes]}
    header = json.dumps({"transformer.wte.weight": entry}).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + n_bytes)
    return folder
