"""Small model folders, and changes to their files while the model is open."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from pretrained import Pretrained
from pretrained.tokenization.bpe import byte_alphabet
from pretrained.tokenization.wordpiece import WordPiece
from tests.helpers.reference_models import enlarge
from tests.helpers.small_bert import SPECIAL, WORDS

TEXT = "a storm sings before the old lamp"
FAMILIES = ("gpt2", "bert", "llama")
# Files of each folder. A sharded folder has the index instead of model.safetensors.
SHARD, INDEX = "model-00001-of-00002.safetensors", "model.safetensors.index.json"
FILES = ("model.safetensors", "config.json", "tokenizer.json", SHARD, INDEX)


def save(folder: Path, family: str, *, sharded: bool, other: bool) -> None:
    """Save a tiny random model; `other`: a different one with the same file names and sizes."""
    folder.mkdir(parents=True)
    n_words = len(SPECIAL) + len(WORDS)
    eps = 0.09 if other else 0.01
    config: Any
    model: Any
    if family == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=256, n_positions=64, n_embd=12, n_layer=2, n_head=3, layer_norm_epsilon=eps,
            bos_token_id=0, eos_token_id=0,
        )  # fmt: skip
        model = transformers.GPT2LMHeadModel(config)
    elif family == "llama":
        config = transformers.LlamaConfig(
            vocab_size=256, max_position_embeddings=64, hidden_size=24, intermediate_size=20,
            num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rms_norm_eps=eps,
            bos_token_id=0, eos_token_id=0,
        )  # fmt: skip
        model = transformers.LlamaForCausalLM(config)
    else:
        config = transformers.BertConfig(
            vocab_size=n_words, max_position_embeddings=40, hidden_size=20, intermediate_size=28,
            num_hidden_layers=3, num_attention_heads=5, layer_norm_eps=eps, pad_token_id=0,
        )  # fmt: skip
        model = transformers.BertForMaskedLM(config)
    enlarge(model)
    if other:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.neg_()
    n_bytes = sum(4 * parameter.numel() for parameter in model.parameters())
    model.save_pretrained(folder, max_shard_size=int(0.7 * n_bytes) if sharded else 10**9)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if family == "bert":
        words = [*SPECIAL, *(reversed(WORDS) if other else WORDS)]
        (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
        WordPiece.from_folder(folder)._tokenizer.save(str(folder / "tokenizer.json"))
        (folder / "vocab.txt").unlink()
    else:
        vocabulary = {character: index for index, character in enumerate(byte_alphabet())}
        if other:
            vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.save(str(folder / "tokenizer.json"))


def numbers(model: Pretrained) -> torch.Tensor:
    """Return the hidden states of `TEXT`."""
    with torch.inference_mode():
        ids = torch.tensor([model.tokenizer.encode(TEXT).ids])
        return model.core(ids).hidden.clone()


def expected_numbers(folder: Path) -> torch.Tensor:
    """Return the hidden states from transformers, which reads the folder independently."""
    config = json.loads((folder / "config.json").read_text())
    family = {"gpt2": "GPT2Model", "bert": "BertModel", "llama": "LlamaModel"}[config["model_type"]]
    options = {"add_pooling_layer": False} if family == "BertModel" else {}
    model = getattr(transformers, family).from_pretrained(folder, **options).eval()
    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(TEXT).ids
    with torch.inference_mode():
        hidden: torch.Tensor = model(torch.tensor([ids])).last_hidden_state
    return hidden


def truncate(file: Path, content: bytes) -> None:
    os.truncate(file, file.stat().st_size // 2)


def grow(file: Path, content: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(b" " * 100)


def rewrite(file: Path, content: bytes) -> None:
    """Overwrite the file in place, as `cp` and `curl -o` do."""
    with file.open("r+b") as opened:
        opened.write(content)


def replace(file: Path, content: bytes) -> None:
    """Replace the file with one of the same size and time, as `rsync -t` and `mv` do."""
    before = file.stat()
    new = file.with_name("new")
    new.write_bytes(content)
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.replace(file)


def delete(file: Path, content: bytes) -> None:
    file.unlink()


def replace_by_fifo(file: Path, content: bytes) -> None:
    file.unlink()
    os.mkfifo(file)


def replace_by_directory(file: Path, content: bytes) -> None:
    file.unlink()
    file.mkdir()


CHANGES: tuple[Callable[[Path, bytes], None], ...] = (
    truncate, grow, rewrite, replace, delete, replace_by_fifo, replace_by_directory,
)  # fmt: skip


def is_usable_after(change: Callable[[Path, bytes], None], file: str) -> bool:
    """Check that the folder still contains a model; spaces after JSON are harmless."""
    return change in (rewrite, replace) or (change is grow and file.endswith(".json"))


class Folders:
    """One folder per model family, created once. Each test modifies a copy."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def _folder(self, family: str, file: str, *, other: bool) -> Path:
        sharded = file in (SHARD, INDEX)
        folder = self._root / f"{family}-{sharded}-{other}"
        if not folder.exists():
            save(folder, family, sharded=sharded, other=other)
        return folder

    def copy(self, family: str, file: str, to: Path) -> Path:
        """Return a copy of a family's folder that contains this file."""
        return Path(shutil.copytree(self._folder(family, file, other=False), to))

    def other(self, family: str, file: str) -> bytes:
        """Return the contents of the other model's file with that name."""
        return (self._folder(family, file, other=True) / file).read_bytes()
