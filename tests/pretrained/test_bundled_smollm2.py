"""The bundled SmolLM2: its conversion against transformers' own reading of the GGUF."""

from __future__ import annotations

import filecmp
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pretrained
from pretrained import bundled_smollm2, checkpoint
from pretrained.tokenization.bpe import FastBpe
from tests.helpers.bundled_models import DECODER

PROMPT = "The next day is bright"


@pytest.fixture(scope="module")
def _gguf_is_parsed_once() -> Iterator[None]:
    """The hundred thousand texts of the GGUF, through which transformers goes three times.

    Seconds each time; and it makes the table of names of the tensors anew for every module.
    """
    import gguf

    patch = pytest.MonkeyPatch()
    for name in ("GGUFReader", "get_tensor_name_map"):
        patch.setattr(gguf, name, functools.cache(getattr(gguf, name)))
    yield
    patch.undo()


@pytest.fixture(scope="module")
def gguf_model(smollm2_package: Path, _gguf_is_parsed_once: None) -> Any:
    """The model as transformers reads it from the GGUF."""
    import transformers

    file = next(smollm2_package.glob("*.gguf"))
    return transformers.LlamaForCausalLM.from_pretrained(
        smollm2_package,
        gguf_file=file.name,
        dtype=torch.float32,
        local_files_only=True,
        attn_implementation="eager",
    ).eval()


def test_the_weights_equal_transformers_own_reading(gguf_model: Any, smollm2_folder: Path) -> None:
    ours = checkpoint.read_state(smollm2_folder)
    theirs = gguf_model.state_dict()
    theirs.pop("lm_head.weight")  # tied to the embedding
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert torch.equal(ours[name], value), name


def test_the_configuration_equals_transformers_own_reading(
    gguf_model: Any, smollm2_folder: Path
) -> None:
    theirs = gguf_model.config.to_dict()
    ours = checkpoint.read_config(smollm2_folder)
    for key in ours.keys() - {"architectures", "rope_theta", "dtype", "use_cache"}:
        assert ours[key] == theirs[key], key
    assert ours["rope_theta"] == theirs["rope_parameters"]["rope_theta"]


@pytest.mark.usefixtures("_gguf_is_parsed_once")
def test_the_tokenizer_equals_transformers_own_reading(
    smollm2_package: Path, smollm2_folder: Path
) -> None:
    import transformers

    file = next(smollm2_package.glob("*.gguf"))
    theirs = transformers.AutoTokenizer.from_pretrained(
        smollm2_package, gguf_file=file.name, local_files_only=True
    )
    ours = FastBpe.from_folder(smollm2_folder, {})
    texts = [PROMPT, "don't  panic\n\n\tnaïve 👩\u200d👧 日本", "x = 13.5 + y2", ""]
    for text in texts:
        assert list(ours.encode(text).ids) == theirs(text)["input_ids"]


def test_core_and_reference_agree_and_continue_the_sentence(gguf_model: Any) -> None:
    model = pretrained.load(DECODER, device="cpu")
    assert model.source.kind == "bundled"
    ids = torch.tensor([model.tokenizer.encode(PROMPT).ids])
    with torch.inference_mode():
        ours = model.core(ids).logits
        theirs = gguf_model(ids).logits
        reference = model.reference(ids).logits
    # the same weights through the same formulas: only the order of float32 sums differs
    torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=0)
    torch.testing.assert_close(reference, theirs, atol=0, rtol=0)
    for _ in range(3):
        with torch.inference_mode():
            step = model.core(ids).logits[:, -1:].argmax(-1)
        ids = torch.cat([ids, step], dim=1)
    assert model.tokenizer.decode(ids[0].tolist()) == PROMPT + " and sunny,"


def test_two_processes_convert_at_the_same_time(
    root: Path, tmp_path: Path, smollm2_package: Path, smollm2_folder: Path
) -> None:
    cache = tmp_path / "cache"
    # Both hold their first step until the other is there, so that they really meet at the lock.
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from pretrained import bundled_smollm2\n"
        "me, other = (Path(p) for p in sys.argv[2:4])\n"
        "me.touch()\n"
        "while not other.exists(): pass\n"
        "print(bundled_smollm2.converted(Path(sys.argv[1])))\n"
    )
    ready = [str(tmp_path / "one"), str(tmp_path / "two")]
    environment = {**os.environ, "ATTENTION_LAB_CACHE": str(cache)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(smollm2_package), *names],
            cwd=root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for names in (ready, ready[::-1])
    ]
    results = [process.communicate(timeout=90) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], results
    assert len({out.strip() for out, _ in results}) == 1
    folder = Path(results[0][0].strip())
    assert folder.parent == cache
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        ours, theirs = folder / name, smollm2_folder / name
        assert ours.stat().st_size == theirs.stat().st_size
        if name != "tokenizer.json":
            assert filecmp.cmp(ours, theirs, shallow=False)
    assert not list(cache.glob(".*"))
    shutil.rmtree(cache)  # half a gigabyte that the next test session does not need


def test_a_damaged_gguf_is_a_sentence(tmp_path: Path, smollm2_package: Path) -> None:
    raw = next(smollm2_package.glob("*.gguf")).open("rb").read(300_000)
    for content in (b"", b"GGUF", b"not a gguf at all", raw):
        (tmp_path / "model.gguf").write_bytes(content)
        with pytest.raises(ValueError, match="damaged or no Llama-style GGUF"):
            bundled_smollm2.convert(tmp_path / "model.gguf", tmp_path)


def test_weights_that_cannot_be_written_are_an_operating_system_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.gguf"
    write_small_gguf(file)
    monkeypatch.setattr(
        bundled_smollm2, "hf_state", lambda reader, config: {"a": np.ones((2, 3), np.float32)}
    )
    (tmp_path / "model.safetensors").mkdir()  # root may write anywhere but over a folder
    with pytest.raises(OSError, match=r"model\.safetensors cannot be written"):
        bundled_smollm2.convert(file, tmp_path)


def write_small_gguf(file: Path) -> None:
    """A GGUF of SmolLM2's kind with two words and no tensor: what it describes is not computed."""
    from gguf import GGUFWriter

    writer = GGUFWriter(file, "llama")
    writer.add_embedding_length(6)
    writer.add_block_count(1)
    writer.add_feed_forward_length(8)
    writer.add_context_length(10)
    writer.add_head_count(3)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(1e4)
    writer.add_vocab_size(3)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(["a", "b", "ab"])
    writer.add_token_types([1, 1, 1])
    writer.add_token_merges(["a b"])
    for add in (writer.add_bos_token_id, writer.add_eos_token_id, writer.add_pad_token_id):
        add(0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def test_no_gguf(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no GGUF"):
        bundled_smollm2.converted(tmp_path)


def test_unpermute_undoes_the_order_of_rows() -> None:
    n_heads, head_size, width = 3, 4, 2
    rows = torch.arange(n_heads * head_size * width, dtype=torch.float32).view(-1, width)
    # llama.cpp's own direction: halves of a head become neighbours
    halves = rows.view(n_heads, 2, head_size // 2, width)
    stored = halves.transpose(1, 2).reshape(-1, width)
    assert bundled_smollm2.unpermute(stored.numpy(), n_heads).tolist() == rows.tolist()
