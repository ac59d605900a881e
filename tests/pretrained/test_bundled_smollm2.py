"""The bundled SmolLM2: its conversion against transformers' own reading of the GGUF."""

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


def test_a_damaged_gguf_is_a_sentence(tmp_path: Path, smollm2_package: Path) -> None:
    raw = next(smollm2_package.glob("*.gguf")).open("rb").read(300_000)
    for content in (b"", b"GGUF", b"not a gguf at all", raw):
        (tmp_path / "model.gguf").write_bytes(content)
        with pytest.raises(ValueError, match="Llama-style GGUF"):
            bundled_smollm2.convert(tmp_path / "model.gguf", tmp_path)


def test_unpermute_undoes_the_order_of_rows() -> None:
    n_heads, head_size, width = 3, 4, 2
    rows = torch.arange(n_heads * head_size * width, dtype=torch.float32).view(-1, width)
    # llama.cpp's own direction: halves of a head become neighbours
    halves = rows.view(n_heads, 2, head_size // 2, width)
    stored = halves.transpose(1, 2).reshape(-1, width)
    assert bundled_smollm2.unpermute(stored.numpy(), n_heads).tolist() == rows.tolist()
