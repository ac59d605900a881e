"""Downloads from a fake hub on the loopback interface."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from pretrained import sources
from pretrained.hub import downloads as hub
from pretrained.hub import fetch
from tests.helpers.fake_hub import COMMIT, FakeHub


@pytest.fixture
def closed_port(monkeypatch: pytest.MonkeyPatch) -> str:
    """Point HF_ENDPOINT at a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return address


def poll(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for a condition that depends on another process."""
    end = time.monotonic() + seconds
    waiting = threading.Event()
    while not condition():
        assert time.monotonic() < end, "gave up waiting"
        waiting.wait(0.02)


def test_download_fetches_only_the_files_it_needs(
    fake_hub: FakeHub, gpt2_files: dict[str, bytes], hub_cache: Path
) -> None:
    fake_hub.repositories["lab/tiny"] = gpt2_files
    assert sources.find("lab/tiny") is None
    download = hub.start_download("lab/tiny", "main")
    assert download.wait(60) == "done", download.error
    source = sources.find("lab/tiny")
    assert source is not None
    assert source.kind == "hub cache"
    assert source.path.resolve() == download.path.resolve()
    assert {file.name for file in source.path.iterdir()} == {"config.json", "model.safetensors"}
    done, total = download.progress()
    # config.json is fetched before progress is counted
    assert done == total == len(gpt2_files["model.safetensors"])
    assert not any("pytorch_model" in path or "evil" in path for path in fake_hub.requested)


@pytest.mark.usefixtures("bundled_weights")
def test_downloaded_model_loads_and_agrees_with_the_reference(
    fake_hub: FakeHub, gpt2_files: dict[str, bytes]
) -> None:
    import torch

    import pretrained

    fake_hub.repositories["lab/tiny"] = gpt2_files
    assert hub.start_download("lab/tiny").wait(60) == "done"
    n_requests = len(fake_hub.requested)
    model = pretrained.load("lab/tiny", device="cpu")
    ids = torch.tensor([[464, 1306, 1110]])
    with torch.inference_mode():
        torch.testing.assert_close(model.core(ids).logits, model.reference(ids).logits)
    assert len(fake_hub.requested) == n_requests, "loading used the network"


def test_download_uses_the_commit_that_was_checked(
    fake_hub: FakeHub, gpt2_files: dict[str, bytes], hub_cache: Path
) -> None:
    from huggingface_hub import try_to_load_from_cache

    fake_hub.repositories["lab/tiny"] = gpt2_files
    fake_hub.pushed["lab/tiny"] = {**gpt2_files, "model.safetensors": bytes(9_000_000)}
    download = hub.start_download("lab/tiny")
    assert download.wait(60) == "done", download.error
    assert download.path is not None
    assert download.path.name == COMMIT
    weights = (download.path / "model.safetensors").read_bytes()
    assert weights == gpt2_files["model.safetensors"]
    # the branch points to this commit, for us and for the hub library
    assert (hub_cache / "models--lab--tiny" / "refs" / "main").read_text() == COMMIT
    source = sources.find("lab/tiny")
    assert source is not None
    assert source.path == download.path
    result = try_to_load_from_cache("lab/tiny", "model.safetensors", cache_dir=hub_cache)
    assert result == str(source.path / "model.safetensors")
    assert [f.name for f in (hub_cache / "models--lab--tiny" / "refs").iterdir()] == ["main"]


def test_older_snapshot_is_used_until_the_new_one_is_complete(
    fake_hub: FakeHub, gpt2_files: dict[str, bytes], hub_cache: Path, tiny_gpt2: Path
) -> None:
    repository = hub_cache / "models--lab--tiny"
    older = Path(shutil.copytree(tiny_gpt2, repository / "snapshots" / ("0" * 40)))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    fake_hub.repositories["lab/tiny"] = gpt2_files
    fake_hub.slow_file = "model.safetensors"
    download = hub.start_download("lab/tiny")
    poll(fake_hub.half_sent.is_set)
    download.cancel()
    assert sources.find("lab/tiny") == sources.WeightsSource("hub cache", older)
    fake_hub.slow_file = ""
    retry = hub.start_download("lab/tiny")
    assert retry.wait(60) == "done", retry.error
    assert sources.find("lab/tiny") == sources.WeightsSource("hub cache", retry.path)


def test_checks_free_disk_space_before_downloading(
    fake_hub: FakeHub,
    gpt2_files: dict[str, bytes],
    hub_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_hub.repositories["lab/tiny"] = gpt2_files
    # the hub library reads this at import, so fake_hub removes the variable too late
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=7_000))
    with pytest.raises(fetch.DownloadRefused, match=r"0\.0"):
        fetch.fetch("lab/tiny", "main", hub_cache)
    assert not any("/resolve/" in path for path in fake_hub.requested)
    assert not hub_cache.exists()


@pytest.mark.parametrize("which", ["one download", "all"])
def test_cancel_stops_the_process_and_removes_partial_files(
    fake_hub: FakeHub, gpt2_files: dict[str, bytes], hub_cache: Path, which: str
) -> None:
    # The hub library writes in chunks of 10 MB, so half of this file is more than one chunk.
    big = {**gpt2_files, "model.safetensors": bytes(24_000_000)}
    fake_hub.repositories["lab/tiny"] = big
    fake_hub.slow_file = "model.safetensors"
    download = hub.start_download("lab/tiny")
    poll(fake_hub.half_sent.is_set)
    poll(lambda: download.progress()[0] > 0)
    done, total = download.progress()
    assert 0 < done < total == 24_000_000
    assert list(hub_cache.rglob("*.incomplete"))
    download.cancel() if which == "one download" else hub.cancel_all()
    assert download.state == "cancelled"
    assert download._process is not None
    download._process.wait(20)  # the fake hub would keep the connection open for longer
    assert download.wait(5) == "cancelled"
    assert sources.find("lab/tiny") is None
    assert not list(hub_cache.rglob("*.incomplete"))
    download.cancel()  # canceling twice is a no-op
    assert download.state == "cancelled"


def test_killed_download_process_is_reported_as_failed(
    fake_hub: FakeHub, gpt2_files: dict[str, bytes]
) -> None:
    fake_hub.repositories["lab/tiny"] = gpt2_files
    fake_hub.slow_file = "model.safetensors"
    download = hub.start_download("lab/tiny")
    poll(fake_hub.half_sent.is_set)
    assert download._process is not None
    download._process.kill()
    assert download.wait(5) == "failed"
    assert "unexpectedly" in download.error


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"config.json": b'{"model_type": "t5"}'}, "'t5'"),
        ({"config.json": b'{"model_type": "gpt2", "auto_map": {"x": "y"}}'}, "code"),
        ({"config.json": None}, "config.json"),
        ({"model.safetensors": None}, "safetensors"),
    ],
)
def test_rejects_invalid_repositories_before_downloading_weights(
    fake_hub: FakeHub, gpt2_files: dict[str, bytes], change: dict[str, bytes | None], names: str
) -> None:
    files = {**gpt2_files, **change}
    fake_hub.repositories["lab/odd"] = {n: b for n, b in files.items() if b is not None}
    download = hub.start_download("lab/odd")
    assert download.wait(60) == "failed"
    assert names in download.error
    assert not any(path.endswith(".safetensors") for path in fake_hub.requested)


def test_byte_limit(
    fake_hub: FakeHub, gpt2_files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_hub.repositories["lab/tiny"] = gpt2_files
    monkeypatch.setenv("ATTENTION_LAB_MAX_DOWNLOAD_GB", "0.001")
    download = hub.start_download("lab/tiny")
    assert download.wait(60) == "failed"
    assert "0.001 GB" in download.error
    assert not any(path.endswith(".safetensors") for path in fake_hub.requested)


def test_unreachable_hub(closed_port: str, hub_cache: Path) -> None:
    assert hub.hub_reachable() is False
    download = hub.start_download("openai-community/gpt2")
    assert download.wait(60) == "failed"
    assert "can't reach" in download.error


def test_downloads_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_LAB_DOWNLOADS", "off")
    with pytest.raises(PermissionError):
        hub.start_download("openai-community/gpt2")


@pytest.mark.parametrize(
    ("hub_id", "revision"),
    [
        *((hub_id, "main") for hub_id in ("gpt2", "../../x", "-x/y", "a/b;rm", "a/..", "a/b\0")),
        *(("lab/tiny", revision) for revision in ("", "--x", "../main", "x\0")),
    ],
)
def test_hostile_names(hub_id: str, revision: str) -> None:
    with pytest.raises(ValueError, match="Hub id|revision"):
        hub.start_download(hub_id, revision)


@pytest.mark.usefixtures("bundled_weights")
def test_prefetch_downloads_missing_models_and_reports_unknown_ones(
    fake_hub: FakeHub, gpt2_files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_hub.repositories["openai-community/gpt2"] = gpt2_files
    # on a hosted site, visitors can't download models but the operator can
    monkeypatch.setenv("ATTENTION_LAB_DOWNLOADS", "off")
    monkeypatch.setenv("ATTENTION_LAB_PREFETCH", " gpt2, all-minilm-l6-v2,,no-such-model ")
    downloads = {download.hub_id: download for download in hub.prefetch()}
    assert set(downloads) == {"openai-community/gpt2", "no-such-model"}
    assert downloads["no-such-model"].state == "failed"
    assert "isn't a known model" in downloads["no-such-model"].error
    assert downloads["openai-community/gpt2"].wait(60) == "done"


@pytest.mark.usefixtures("bundled_weights")
def test_prepare_downloads_models_into_a_folder(
    fake_hub: FakeHub,
    gpt2_files: dict[str, bytes],
    hub_cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pretrained import prepare

    fake_hub.repositories |= {"openai-community/gpt2": gpt2_files, "lab/tiny": gpt2_files}
    folder = tmp_path / "models"
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(folder))
    assert prepare.main(["--into", str(folder), "gpt2", "lab/tiny"]) == 0
    for name in ("gpt2", "lab/tiny"):
        source = sources.find(name)
        assert source is not None
        assert (source.kind, source.path) == ("folder", folder / name.replace("/", "--"))
        for file in source.path.iterdir():
            assert not file.is_symlink()
            assert file.read_bytes() == gpt2_files[file.name]
    assert sources.hub_cache() == hub_cache
    assert list(hub_cache.rglob("model.safetensors")) == []


def test_choose_selects_only_config_and_shards() -> None:
    sizes: dict[str, int | None] = {
        "config.json": 1,
        "model.safetensors.index.json": 2,
        "model-00001-of-00002.safetensors": 3,
        "model-00002-of-00002.safetensors": 4,
        "other.safetensors": 5,
        "sub/config.json": 6,
    }
    chosen = fetch.choose(sizes)
    assert sum(chosen.values()) == 10
    with pytest.raises(fetch.DownloadRefused, match="size"):
        fetch.choose({"config.json": 1, "model.safetensors": None})
    with pytest.raises(fetch.DownloadRefused, match="MB"):
        fetch.choose({"config.json": 10**9, "model.safetensors": 1})


def test_timeout_for_unresponsive_hub(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        results: list[bool] = []
        thread = threading.Thread(
            target=lambda: results.append(hub.hub_reachable(timeout=0.3)), daemon=True
        )
        thread.start()
        thread.join(60)
        assert results == [False]
