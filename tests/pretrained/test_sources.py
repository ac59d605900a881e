"""Where weights are searched and in which order, and names that try path traversal."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pretrained
from pretrained import sources
from pretrained.specs import SPECS, spec_from_config
from tests.helpers.bundled_models import DECODER, ENCODER

HOSTILE = [
    "", "..", "../x", "/etc", "a/../../b", "a\\b", "x\0", "-rf", ".hidden", "é", "x" * 200, "~root",
]  # fmt: skip


def copy_model(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copytree(source, target))


def cache_entry(cache: Path, hub_id: str, source: Path) -> Path:
    """Create a model in the layout of the Hugging Face cache."""
    repository = cache / ("models--" + hub_id.replace("/", "--"))
    snapshot = copy_model(source, repository / "snapshots" / ("0" * 40))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    return snapshot


@pytest.mark.parametrize("name", HOSTILE)
def test_rejects_hostile_names(name: str, models: Path) -> None:
    with pytest.raises(ValueError, match="model name|Hub id"):
        sources.find(name)
    with pytest.raises(ValueError, match="model name|Hub id"):
        pretrained.load_by_name(name)


def test_rejects_links_out_of_the_models_folder(
    models: Path, tiny_gpt2: Path, tmp_path: Path
) -> None:
    outside = copy_model(tiny_gpt2, tmp_path / "outside")
    (models / "linked").symlink_to(outside)
    with pytest.raises(ValueError, match="is a link"):
        sources.find("linked")
    assert "linked" not in [entry.spec.name for entry in pretrained.catalog()]


def test_search_order_is_folder_then_hub_cache_then_package(
    models: Path, hub_cache: Path, minilm_folder: Path
) -> None:
    name, hub_id = ENCODER, "sentence-transformers/all-MiniLM-L6-v2"
    assert sources.find(name) == sources.WeightsSource("bundled", minilm_folder)
    cached = cache_entry(hub_cache, hub_id, minilm_folder)
    assert sources.find(name) == sources.WeightsSource("hub cache", cached)
    by_hub_id = copy_model(minilm_folder, models / hub_id.replace("/", "--"))
    assert sources.find(name) == sources.WeightsSource("folder", by_hub_id)
    by_name = copy_model(minilm_folder, models / name)
    assert sources.find(name) == sources.find(hub_id) == sources.WeightsSource("folder", by_name)


def test_unfinished_download_is_not_ready(hub_cache: Path, tiny_gpt2: Path) -> None:
    snapshot = cache_entry(hub_cache, "openai-community/gpt2", tiny_gpt2)
    assert sources.find("gpt2") == sources.WeightsSource("hub cache", snapshot)
    (snapshot / "model.safetensors").unlink()
    assert sources.find("gpt2") is None


def test_catalog_does_not_import_torch_or_transformers(
    root: Path, hub_cache: Path, tiny_gpt2: Path
) -> None:
    cache_entry(hub_cache, "lab/tiny", tiny_gpt2)
    code = (
        "import sys, pretrained\n"
        "entries = pretrained.catalog()\n"
        "assert any(e.state == 'ready' for e in entries)\n"
        "assert entries[-1].spec.name == 'lab/tiny'\n"
        "import pretrained.hub.downloads\n"
        "heavy = ('torch', 'transformers', 'tokenizers', 'tiktoken', 'safetensors', 'gguf',"
        " 'numpy', 'streamlit')\n"
        "print([m for m in heavy if m in sys.modules])\n"
    )
    assert run(code, root) == "[]"


def test_loading_never_opens_a_socket(root: Path) -> None:
    code = (
        "import socket\n"
        "def refuse(*a, **k): raise SystemExit('a socket was opened')\n"
        "socket.socket.connect = refuse\n"
        "socket.getaddrinfo = refuse\n"
        "import pretrained\n"
        "pretrained.catalog()\n"
        "model = pretrained.load('all-minilm-l6-v2', device='cpu')\n"
        "model.reference\n"
        "try: pretrained.load('gpt2')\n"
        "except pretrained.WeightsMissing as error: print('missing')\n"
    )
    assert run(code, root).splitlines()[-1] == "missing"


def test_specs_match_the_bundled_files(minilm_folder: Path, smollm2_folder: Path) -> None:
    for folder, name in ((minilm_folder, ENCODER), (smollm2_folder, DECODER)):
        spec = sources.find_spec(name)
        assert spec is not None
        read = spec_from_config(name, json.loads((folder / "config.json").read_text()))
        for field in ("role", "architecture", "n_layers", "n_heads", "n_kv_heads"):
            assert getattr(spec, field) == getattr(read, field), (name, field)
        assert spec.context_length == read.context_length


def test_catalog_lists_only_usable_local_models(models: Path, tiny_gpt2: Path) -> None:
    copy_model(tiny_gpt2, models / "mine")
    broken = copy_model(tiny_gpt2, models / "broken")
    (broken / "config.json").write_text("{")
    unsupported = copy_model(tiny_gpt2, models / "unsupported")
    (unsupported / "config.json").write_text('{"model_type": "t5"}')
    without_weights = copy_model(tiny_gpt2, models / "without_weights")
    (without_weights / "config.json").write_text('{"model_type": "gpt2", "n_head": "many"}')
    copy_model(tiny_gpt2, models / "name with spaces")
    (models / "a file").write_text("x")
    extra = [entry for entry in pretrained.catalog() if entry.spec not in SPECS]
    assert [entry.spec.name for entry in extra] == ["mine"]
    assert extra[0].state == "ready"
    assert extra[0].source == sources.WeightsSource("folder", models / "mine")
    spec = extra[0].spec
    assert (spec.role, spec.n_layers, spec.n_heads, spec.n_kv_heads) == ("decoder", 2, 3, 3)
    assert (spec.context_length, spec.hub_id, spec.download_bytes) == (24, "", 0)


def test_catalog_lists_hub_cache_models_by_hub_id(hub_cache: Path, tiny_gpt2: Path) -> None:
    snapshot = cache_entry(hub_cache, "lab/tiny", tiny_gpt2)
    cache_entry(hub_cache, "openai-community/gpt2", tiny_gpt2)  # a known model is only listed once
    extra = [entry for entry in pretrained.catalog() if entry.spec not in SPECS]
    assert [entry.spec.name for entry in extra] == ["lab/tiny"]
    assert extra[0].state == "ready"
    assert (
        extra[0].source == sources.WeightsSource("hub cache", snapshot) == sources.find("lab/tiny")
    )
    spec = extra[0].spec
    assert (spec.hub_id, spec.n_layers, spec.n_heads) == ("lab/tiny", 2, 3)
    assert pretrained.load("lab/tiny", device="cpu").spec == spec


def test_catalog_skips_broken_hub_cache_entries(hub_cache: Path, tiny_gpt2: Path) -> None:
    (cache_entry(hub_cache, "lab/unfinished", tiny_gpt2) / "model.safetensors").unlink()
    (cache_entry(hub_cache, "lab/broken", tiny_gpt2) / "config.json").write_text("{")
    (cache_entry(hub_cache, "lab/unsupported", tiny_gpt2) / "config.json").write_text("[]")
    for number, ref in enumerate((b"", b"\xff\xfe", b"0" * 39 + b"\0", b"../" * 13, b"1" * 40)):
        repository = cache_entry(hub_cache, f"lab/ref{number}", tiny_gpt2).parent.parent
        (repository / "refs" / "main").write_bytes(ref)
    (cache_entry(hub_cache, "lab/nodir", tiny_gpt2).parent.parent / "refs" / "main").unlink()
    (hub_cache / "models--lab--nodir" / "refs" / "main").mkdir()
    (hub_cache / "models--lab--file").write_text("x")
    (hub_cache / "models--lab--empty").mkdir()
    (hub_cache / "models--lab--gone").symlink_to(hub_cache / "nowhere")
    assert [entry.spec for entry in pretrained.catalog()] == list(SPECS)


@pytest.mark.parametrize("revision", ["main", "0" * 40, "1" * 40, "other"])
def test_snapshots_match_huggingface_hub(hub_cache: Path, tiny_gpt2: Path, revision: str) -> None:
    from huggingface_hub import try_to_load_from_cache

    cache_entry(hub_cache, "lab/tiny", tiny_gpt2)
    theirs = try_to_load_from_cache(
        "lab/tiny", "config.json", cache_dir=hub_cache, revision=revision
    )
    ours = sources.hub_cache_folder("lab/tiny", revision)
    assert (ours and str(ours / "config.json")) == theirs


def run(code: str, root: Path) -> str:
    """Return the output of a new interpreter."""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()
