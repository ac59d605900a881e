"""A fake hub for download tests, and the files of a model on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.fake_hub import FakeHub


@pytest.fixture
def fake_hub(monkeypatch: pytest.MonkeyPatch, hub_cache: Path) -> Iterator[FakeHub]:
    server = FakeHub()
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield server
    server.close()


@pytest.fixture
def gpt2_files(tiny_gpt2: Path) -> dict[str, bytes]:
    return {
        "config.json": (tiny_gpt2 / "config.json").read_bytes(),
        "model.safetensors": (tiny_gpt2 / "model.safetensors").read_bytes(),
        "pytorch_model.bin": b"\x80\x02 a pickle",
        "modeling_evil.py": b"raise SystemExit",
        "onnx/model.onnx": b"not wanted",
    }
