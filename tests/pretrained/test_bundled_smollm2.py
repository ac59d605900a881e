"""The bundled SmolLM2: our conversion matches how transformers reads the GGUF."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import pretrained
from pretrained import bundled_smollm2, checkpoint
from pretrained.tokenization.bpe import FastBpe
from tests.helpers.bundled_models import DECODER

PROMPT = "The next day is bright"


@pytest.fixture(scope="module")
def _cached_gguf_parsing() -> Iterator[None]:
    """Cache what transformers reads from the GGUF.

    Otherwise it parses 100,000 strings three times, which takes seconds each time, and rebuilds
    the table of tensor names for every module.
    """
    import gguf

    patch = pytest.MonkeyPatch()
    for name in ("GGUFReader", "get_tensor_name_map"):
        patch.setattr(gguf, name, functools.cache(getattr(gguf, name)))
    yield
    patch.undo()


@pytest.fixture(scope="module")
def gguf_model(smollm2_package: Path, _cached_gguf_parsing: None) -> Any:
    """Load the GGUF with transformers."""
    import transformers

    file = next(smollm2_package.glob("*.gguf"))
    return transformers.LlamaForCausalLM.from_pretrained(
        smollm2_package,
        gguf_file=file.name,
        dtype=torch.float32,
        local_files_only=True,
        attn_implementation="eager",
    ).eval()


def test_weights_equal_transformers(gguf_model: Any, smollm2_folder: Path) -> None:
    ours = checkpoint.read_state(smollm2_folder)
    theirs = gguf_model.state_dict()
    theirs.pop("lm_head.weight")  # tied to the embedding
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert torch.equal(ours[name], value), name


def test_configuration_equals_transformers(gguf_model: Any, smollm2_folder: Path) -> None:
    theirs = gguf_model.config.to_dict()
    ours = checkpoint.read_config(smollm2_folder)
    for key in ours.keys() - {"architectures", "rope_theta", "dtype", "use_cache"}:
        assert ours[key] == theirs[key], key
    assert ours["rope_theta"] == theirs["rope_parameters"]["rope_theta"]


@pytest.mark.usefixtures("_cached_gguf_parsing")
def test_tokenizer_equals_transformers(smollm2_package: Path, smollm2_folder: Path) -> None:
    import transformers

    file = next(smollm2_package.glob("*.gguf"))
    theirs = transformers.AutoTokenizer.from_pretrained(
        smollm2_package, gguf_file=file.name, local_files_only=True
    )
    ours = FastBpe.from_folder(smollm2_folder, {})
    texts = [PROMPT, "don't  panic\n\n\tnaïve 👩\u200d👧 日本", "x = 13.5 + y2", ""]
    for text in texts:
        assert list(ours.encode(text).ids) == theirs(text)["input_ids"]


def test_core_and_reference_agree(gguf_model: Any) -> None:
    model = pretrained.load(DECODER, device="cpu")
    assert model.source.kind == "bundled"
    ids = torch.tensor([model.tokenizer.encode(PROMPT).ids])
    with torch.inference_mode():
        ours = model.core(ids).logits
        theirs = gguf_model(ids).logits
        reference = model.reference(ids).logits
    # weights and formulas are the same; only the order of float32 sums differs
    torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=0)
    torch.testing.assert_close(reference, theirs, atol=0, rtol=0)
    for _ in range(3):
        with torch.inference_mode():
            step = model.core(ids).logits[:, -1:].argmax(-1)
        ids = torch.cat([ids, step], dim=1)
    assert model.tokenizer.decode(ids[0].tolist()) == PROMPT + " and sunny,"


def test_damaged_gguf_gives_a_clear_error(tmp_path: Path, smollm2_package: Path) -> None:
    raw = next(smollm2_package.glob("*.gguf")).open("rb").read(300_000)
    for content in (b"", b"GGUF", b"not a gguf at all", raw):
        (tmp_path / "model.gguf").write_bytes(content)
        with pytest.raises(ValueError, match="Llama-style GGUF"):
            bundled_smollm2.convert(tmp_path / "model.gguf", tmp_path)


def test_unpermute_restores_the_row_order() -> None:
    n_heads, head_size, width = 3, 4, 2
    rows = torch.arange(n_heads * head_size * width, dtype=torch.float32).view(-1, width)
    # llama.cpp's permutation interleaves the two halves of a head
    halves = rows.view(n_heads, 2, head_size // 2, width)
    stored = halves.transpose(1, 2).reshape(-1, width)
    assert bundled_smollm2.unpermute(stored.numpy(), n_heads).tolist() == rows.tolist()
