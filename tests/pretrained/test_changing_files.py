"""Files that change after loading: the loaded model stays the same, the next one changes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import pretrained
from pretrained.masked_word import masked_word_head
from pretrained.tokenization.selection import tokenizer_for_folder
from tests.helpers import changing_files as files
from tests.helpers.reference_models import TOLERANCE

Change = Callable[[Path, bytes], None]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> files.Folders:
    return files.Folders(tmp_path_factory.mktemp("folders"))


@pytest.fixture(autouse=True)
def _timeout() -> Iterator[None]:
    """Interrupt a test that blocks on a FIFO."""

    def interrupt(*_: Any) -> None:
        raise TimeoutError("blocked for a minute")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# every change for BERT, but only in-place changes of the weights for the others
CASES = [("bert", file, change) for file in files.FILES for change in files.CHANGES] + [
    (family, "model.safetensors", change)
    for family in ("gpt2", "llama")
    for change in (files.truncate, files.rewrite)
]


@pytest.mark.parametrize(("family", "file", "change"), CASES)
def test_files_change_after_loading(
    family: str, file: str, change: Change, models: Path, folders: files.Folders
) -> None:
    folder = folders.copy(family, file, models / "mine")
    model = pretrained.load("mine", device="cpu")
    before = files.numbers(model)
    torch.testing.assert_close(before, files.expected_numbers(folder), **TOLERANCE)
    change(folder / file, folders.other(family, file))
    assert torch.equal(files.numbers(model), before)
    with pytest.raises(ValueError, match="mine"):
        model.load_reference()
    if family == "bert":
        with pytest.raises(ValueError, match="mine"):
            masked_word_head(model)
    if not files.is_usable_after(change, file):
        with pytest.raises((ValueError, LookupError), match=f"mine|{file}"):
            pretrained.load("mine", device="cpu")
        return
    reloaded = pretrained.load("mine", device="cpu")
    values = files.numbers(reloaded)
    torch.testing.assert_close(values, files.expected_numbers(folder), **TOLERANCE)
    reference = reloaded.load_reference()
    with torch.inference_mode():
        ids = torch.tensor([reloaded.tokenizer.encode(files.TEXT).ids])
        theirs = reference(ids, output_hidden_states=True).hidden_states[-1]
    torch.testing.assert_close(values, theirs, **TOLERANCE)


@pytest.mark.parametrize("change", [files.truncate, files.rewrite, files.replace])
@pytest.mark.parametrize("file", ["model.safetensors", files.SHARD])
def test_files_change_while_they_are_read(
    file: str,
    change: Change,
    models: Path,
    folders: files.Folders,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The file changes after its first tensor has been read."""
    from pretrained import weights

    folder, plain = folders.copy("llama", file, models / "mine"), weights._plain
    content = folders.other("llama", file)

    def change_then_read(model_type: str, key: str) -> str:
        monkeypatch.setattr(weights, "_plain", plain)
        change(folder / file, content)
        return plain(model_type, key)

    monkeypatch.setattr(weights, "_plain", change_then_read)
    with pytest.raises(ValueError, match="mine"):
        pretrained.load("mine", device="cpu")


@pytest.mark.parametrize("file", files.FILES)
@pytest.mark.parametrize("change", [files.replace_by_fifo, files.replace_by_directory])
def test_catalog_skips_anything_that_is_not_a_regular_file(
    file: str, change: Change, models: Path, folders: files.Folders
) -> None:
    folder = folders.copy("gpt2", file, models / "mine")
    change(folder / file, b"")
    listed = {entry.spec.name for entry in pretrained.catalog()}
    # the tokenizer isn't checked until the model is loaded
    assert ("mine" in listed) == (file == "tokenizer.json")
    with pytest.raises((ValueError, LookupError), match=f"mine|{file}"):
        pretrained.load("mine", device="cpu")


@pytest.mark.parametrize(
    ("family", "dtype"), [("gpt2", "float32"), ("bert", "bfloat16"), ("llama", "float32")]
)
def test_no_file_stays_mapped_into_memory(
    family: str, dtype: str, models: Path, folders: files.Folders
) -> None:
    folder = folders.copy(family, "model.safetensors", models / "mine")
    model = pretrained.load("mine", device="cpu", dtype=dtype)
    reference = model.load_reference()
    assert str(folder) not in Path("/proc/self/maps").read_text()
    assert {weights.dtype for weights in reference.parameters()} == {model.dtype}


@pytest.mark.parametrize("change", [files.replace_by_fifo, files.replace_by_directory])
@pytest.mark.parametrize(
    ("family", "file"),
    [
        ("gpt2", "vocab.json"),
        ("llama", "tokenizer.json"),
        ("llama", "merges.txt"),
        ("bert", "vocab.txt"),
        ("bert", "tokenizer_config.json"),
    ],
)
def test_rejects_tokenizers_that_are_not_regular_files(
    family: str, file: str, change: Change, tmp_path: Path
) -> None:
    """These don't count as missing files, which may have a default."""
    for name, content in (("vocab.json", "{}"), ("merges.txt", ""), ("vocab.txt", "")):
        (tmp_path / name).write_text(content)
    (tmp_path / file).touch()
    change(tmp_path / file, b"")
    with pytest.raises(ValueError, match=file):
        tokenizer_for_folder(tmp_path, {"model_type": family, "vocab_size": 50257})
