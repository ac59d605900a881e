"""Test GPU memory detection: from the driver's program, or without it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from serving import gpu, memory

MIB = 1024**2
Driver = Callable[[str], None]


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Simulate a machine with a GPU, a torch that can use it, and a scripted driver."""
    (tmp_path / "device").touch()
    monkeypatch.setattr(gpu, "DEVICES", (tmp_path / "none", tmp_path / "device"))
    monkeypatch.setattr(gpu, "_torch_version", lambda: "2.13.0")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    gpu.memory_bytes.cache_clear()

    def write_driver(script: str) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    return write_driver


@pytest.fixture(autouse=True)
def _clear_cache(driver: Driver):
    yield
    gpu.memory_bytes.cache_clear()


def test_smallest_gpu_counts(driver: Driver):
    driver("echo 24576; echo 256")
    assert gpu.memory_bytes() == 256 * MIB
    assert memory.memory_bytes() == 256 * MIB  # the limit of the whole site


@pytest.mark.parametrize("script", ["exit 9", "echo [N/A]"])
def test_driver_without_an_answer(driver: Driver, script: str):
    driver(script)
    assert gpu.memory_bytes() == 0
    assert memory.memory_bytes() > 256 * MIB  # the machine's memory


@pytest.mark.parametrize("lacking", ["device", "CUDA"])
def test_without_a_gpu_that_torch_can_use(
    driver: Driver, lacking: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    driver("echo 256")
    if lacking == "device":
        (tmp_path / "device").unlink()
    else:
        monkeypatch.setattr(gpu, "_torch_version", lambda: "2.13.0+cpu")
    assert gpu.memory_bytes() is None
    assert memory.memory_bytes() > 256 * MIB
