"""Loading: the core, the tokenizer, the reference, and what is said when it cannot be done."""

from __future__ import annotations

import json
import logging
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import pretrained
from pretrained.load import quiet_transformers
from pretrained.tokenization.gpt2 import Gpt2Bpe
from pretrained.untrained import untrained
from tests.helpers.bundled_models import ENCODER

SENTENCE = "the animal didn't cross the street because it was too tired"


@pytest.fixture(scope="module")
def minilm() -> pretrained.Pretrained:
    return pretrained.load(ENCODER, device="cpu")


def copy(source: Path, target: Path) -> Path:
    return Path(shutil.copytree(source, target))


def test_minilm_core_agrees_with_the_reference(minilm: pretrained.Pretrained) -> None:
    tokens = minilm.tokenizer.encode(SENTENCE)
    ids = torch.tensor([tokens.ids])
    with torch.inference_mode():
        ours = minilm.core(ids, record=True)
        theirs = minilm.reference(ids, output_attentions=True)
    torch.testing.assert_close(ours.hidden, theirs.last_hidden_state, atol=2e-5, rtol=0)
    for record, attention in zip(ours.records, theirs.attentions, strict=True):
        torch.testing.assert_close(record.weights, attention, atol=1e-5, rtol=0)


def test_minilm_attends_from_the_pronoun_to_the_animal(minilm: pretrained.Pretrained) -> None:
    tokens = minilm.tokenizer.encode(SENTENCE)
    it, animal = tokens.pieces.index("it"), tokens.pieces.index("animal")
    with torch.inference_mode():
        out = minilm.core(torch.tensor([tokens.ids]), record=True)
    assert out.records[3].weights[0, 1, it, animal].item() == pytest.approx(0.64, abs=0.01)


def test_what_is_told_about_a_model(minilm: pretrained.Pretrained, minilm_folder: Path) -> None:
    assert minilm.name == ENCODER
    assert minilm.source == pretrained.WeightsSource("bundled", minilm_folder)
    assert minilm.spec.title == "MiniLM"
    assert (minilm.device, minilm.dtype) == (torch.device("cpu"), torch.float32)
    assert not minilm.core.training
    assert minilm.core.config.context_length == minilm.spec.context_length


def test_the_reference_is_loaded_once(minilm: pretrained.Pretrained) -> None:
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(minilm.reference)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(model) for model in found}) == 1
    assert minilm.reference.config._attn_implementation == "eager"
    assert minilm.reference.pooler is None
    assert not minilm.reference.training


def test_a_local_gpt2(models: Path, tiny_gpt2: Path) -> None:
    copy(tiny_gpt2, models / "mine")
    model = pretrained.load("mine", device="cpu")
    assert model.source.kind == "folder"
    assert isinstance(model.tokenizer, Gpt2Bpe)
    ids = torch.tensor([model.tokenizer.encode("The next day").ids])
    with torch.inference_mode():
        ours, theirs = model.core(ids).logits, model.reference(ids).logits
    assert ours.dtype == theirs.dtype == torch.float32
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def test_bert_with_its_head_for_masked_words(models: Path, minilm_folder: Path) -> None:
    import transformers

    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=30522,
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=40,
    )
    folder = models / "masked"
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    shutil.copy(minilm_folder / "vocab.txt", folder)
    model = pretrained.load("masked", device="cpu")
    assert type(model.reference).__name__ == "BertForMaskedLM"
    ids = torch.tensor([model.tokenizer.encode("a [MASK] day").ids])
    with torch.inference_mode():
        ours = model.core(ids).hidden
        theirs = model.reference(ids, output_hidden_states=True)
    torch.testing.assert_close(ours, theirs.hidden_states[-1], atol=1e-5, rtol=0)
    assert theirs.logits.shape[-1] == 30522


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", torch.float16])
def test_dtypes(dtype: str | torch.dtype) -> None:
    model = pretrained.load(ENCODER, device="cpu", dtype=dtype)
    expected = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    assert {p.dtype for p in model.core.parameters()} == {expected}


@pytest.mark.parametrize(
    "dtype", ["int8", "nonsense", "nn", "float64", "double", torch.int32, torch.float64]
)
def test_dtypes_that_are_none(dtype: str | torch.dtype) -> None:
    with pytest.raises(ValueError, match=r"no dtype .* allowed are float32, float16, bfloat16\."):
        pretrained.load(ENCODER, dtype=dtype)


def test_two_threads_leave_the_verbosity_of_transformers_as_it_was() -> None:
    from transformers.utils import logging as transformers_logging

    def settings() -> tuple[int, bool]:
        return transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()

    before = settings()
    assert before[0] != logging.ERROR
    first_inside, second_inside, first_left = (threading.Event() for _ in range(3))

    def first() -> None:
        with quiet_transformers():
            first_inside.set()
            second_inside.wait(0.3)  # in vain: the second thread has to wait its turn
        first_left.set()

    def second() -> None:
        first_inside.wait(5)
        with quiet_transformers():
            second_inside.set()
            first_left.wait(5)

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert second_inside.is_set()
    assert settings() == before


# the first does not exist, "meta" holds no numbers, and no machine has a 99th GPU
NO_DEVICES = ["toaster", "meta", "cuda:99", "mps:99", "xla", "vulkan", "", "cuda:-1", 1.5, True]
NO_DEVICES += [torch.device("meta"), torch.device("cuda:99")]
if not torch.cuda.is_available():
    NO_DEVICES += ["cuda", "cuda:0", 0]
if not torch.backends.mps.is_available():
    NO_DEVICES += ["mps", torch.device("mps")]


@pytest.mark.parametrize("device", NO_DEVICES, ids=repr)
def test_a_device_that_is_not_here(device: Any) -> None:
    for load in (
        lambda: pretrained.load(ENCODER, device=device),
        lambda: untrained("random-tiny", device=device),
    ):
        with pytest.raises(ValueError, match="device") as error:
            load()
        assert getattr(device, "type", str(device)) in str(error.value)


@pytest.mark.parametrize(
    "model", ["no-such-model", "models/mine", "./mine", "../mine", "/mine", "~/mine", "a/b/c", ""]
)
def test_what_is_no_model_is_told_what_is_one(model: str) -> None:
    names = "gpt2-novels, smollm2-135m-instruct, bert-novels, all-minilm-l6-v2"
    with pytest.raises(
        ValueError, match=rf"no model '{model}' on this .*ready \({names}\)"
    ) as error:
        pretrained.load(model)
    assert "ATTENTION_LAB_MODELS, or the path of a folder with a config.json" in str(error.value)


def test_a_folder_by_its_path(
    tiny_gpt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy(tiny_gpt2, tmp_path / "some" / "mine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    paths = [folder, str(folder), Path("some/mine"), "some/mine", "./some/mine", "~/some/mine"]
    for path in paths:
        model = pretrained.load(path, device="cpu")
        assert (model.name, model.spec.title, model.folder) == ("mine", "mine", folder)
        assert model.source == pretrained.WeightsSource("folder", folder)
    monkeypatch.chdir("/")  # the reference is read later, from the same place
    ids = torch.tensor([model.tokenizer.encode("The next day").ids])
    torch.testing.assert_close(
        model.core(ids).logits, model.reference(ids).logits, atol=1e-5, rtol=0
    )


def test_a_folder_that_is_named_like_a_known_model_has_its_own_title(
    tiny_gpt2: Path, tmp_path: Path
) -> None:
    spec = pretrained.load(copy(tiny_gpt2, tmp_path / "gpt2"), device="cpu").spec
    assert (spec.title, spec.n_layers, spec.note) == ("gpt2", 2, "From a folder on this machine.")


def test_a_folder_without_a_tokenizer_takes_ids(tiny_gpt2: Path, tmp_path: Path) -> None:
    folder = copy(tiny_gpt2, tmp_path / "mine")
    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    weights["transformer.wte.weight"] = weights["transformer.wte.weight"][:70].clone()
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": 70, "eos_token_id": 3}))
    model = pretrained.load(folder, device="cpu")
    assert model.core(torch.tensor([[1, 69]])).logits.shape == (1, 2, 70)
    assert (model.tokenizer.vocab_size, model.tokenizer.end_ids) == (70, {3})
    assert isinstance(model.tokenizer, pretrained.Tokenizer)
    for use in (
        lambda: model.tokenizer.encode("a"),
        lambda: model.tokenizer.decode([1]),
        lambda: model.tokenizer.decode_bytes([1]),
    ):
        with pytest.raises(ValueError, match=r"^mine holds no tokenizer"):
            use()


def test_a_name_is_never_a_path(
    tiny_gpt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy(tiny_gpt2, tmp_path / "some" / "mine")
    monkeypatch.chdir(tmp_path)
    for path in (str(folder), "some/mine", "./some/mine", "some/../some/mine"):
        assert pretrained.load(path, device="cpu").folder.samefile(folder)
        with pytest.raises(ValueError, match="no model|no hub name"):
            pretrained.load_by_name(path, device="cpu")


def test_a_known_model_that_is_not_here_says_how_to_get_it() -> None:
    with pytest.raises(pretrained.WeightsMissing) as caught:
        pretrained.load("gpt2")
    message = str(caught.value)
    assert message == (
        "The weights of GPT-2 (124M) are not on this machine: download it from the hub (550 MB), "
        "or put its files into ATTENTION_LAB_MODELS/gpt2."
    )
    assert isinstance(caught.value, LookupError)


def test_an_unusable_local_folder_says_why(models: Path, tiny_gpt2: Path) -> None:
    folder = copy(tiny_gpt2, models / "mine")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="cannot be used: .*pickled"):
        pretrained.load("mine")


def test_truncated_weights(models: Path, tiny_gpt2: Path) -> None:
    file = copy(tiny_gpt2, models / "mine") / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(ValueError, match="truncated or damaged"):
        pretrained.load("mine")


def test_a_folder_that_pretends_to_be_another_model(models: Path, tiny_gpt2: Path) -> None:
    copy(tiny_gpt2, models / "gpt2")
    with pytest.raises(ValueError, match=r"GPT-2 \(124M\) holds another model: gpt2 with 2 layers"):
        pretrained.load("gpt2")


def test_a_tokenizer_larger_than_the_model(
    models: Path, tiny_gpt2: Path, smollm2_folder: Path
) -> None:
    folder = copy(tiny_gpt2, models / "mine")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 40_000}))
    shutil.copy(smollm2_folder / "tokenizer.json", folder)
    with pytest.raises(ValueError, match="49152 tokens, the model only 40000"):
        pretrained.load("mine")


@pytest.mark.parametrize("size", ["8192", None, 0.5])
def test_a_vocabulary_size_that_is_no_number(
    models: Path, tiny_gpt2: Path, smollm2_folder: Path, size: object
) -> None:
    folder = copy(tiny_gpt2, models / "mine")
    shutil.copy(smollm2_folder / "tokenizer.json", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": size}))
    with pytest.raises(ValueError, match="^vocab_size has to be a whole number"):
        pretrained.load("mine")


def test_prepare_prints_what_is_ready(
    smollm2_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pretrained import prepare

    assert prepare.main() == 0
    out = capsys.readouterr().out
    assert str(smollm2_folder) in out
    assert "gpt2-xl                  not here, 6,434 MB" in out
