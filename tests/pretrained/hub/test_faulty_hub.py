"""A hub that hangs or returns garbage gives a clear error and leaves no model behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from pretrained import sources
from pretrained.hub import downloads as hub
from tests.helpers.fake_hub import FakeHub


@pytest.mark.parametrize(
    "garbage", [b"<html>Sign in to this network</html>", b'{"sha": 5, "siblings": "x"}']
)
def test_garbage_from_the_hub(fake_hub: FakeHub, hub_cache: Path, garbage: bytes) -> None:
    fake_hub.garbage = garbage
    download = hub.start_download("lab/tiny")
    assert download.wait(60) == "failed"
    assert "Traceback" not in download.error
    assert sources.find("lab/tiny") is None
    assert not list(hub_cache.rglob("*.safetensors"))


def test_cancel_download_from_hanging_hub(fake_hub: FakeHub, hub_cache: Path) -> None:
    fake_hub.silent = True
    download = hub.start_download("lab/tiny")
    assert fake_hub.half_sent.wait(60)
    assert download.progress() == (0, 0)
    download.cancel()
    assert download.wait(20) == "cancelled"
    assert download._process is not None
    assert download._process.returncode is not None
    assert sources.find("lab/tiny") is None


def test_invalid_weights_are_downloaded_again(
    fake_hub: FakeHub, gpt2_files: dict[str, bytes]
) -> None:
    valid = gpt2_files["model.safetensors"]
    invalid = b"<html>" + bytes(len(valid) - 6)
    fake_hub.repositories["lab/tiny"] = {**gpt2_files, "model.safetensors": invalid}
    download = hub.start_download("lab/tiny")
    assert download.wait(60) == "failed"
    assert "model.safetensors" in download.error
    assert sources.find("lab/tiny") is None
    fake_hub.repositories["lab/tiny"] = gpt2_files  # the same commit, now with valid weights
    retry = hub.start_download("lab/tiny")
    assert retry.wait(60) == "done", retry.error
    source = sources.find("lab/tiny")
    assert source is not None
    assert (source.path / "model.safetensors").read_bytes() == valid
