"""Untrusted tokenizer files that could exhaust memory or run forever are rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from pretrained.tokenization import bounds

# Published split patterns: GPT-2, Llama 3, Qwen 2, GPT-4o, DeepSeek.
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PUBLISHED = [
    GPT2,
    LLAMA,
    LLAMA.replace("{1,3}", ""),
    GPT4O,
    r"[\r\n]",
    r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
    r"\s+$",
    r"[一-龥ࠀ-一가-퟿]+",
    r" {2,}",
    r"\s+",
]


@pytest.mark.parametrize("pattern", PUBLISHED)
def test_accepts_published_patterns(pattern: str):
    bounds.check_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+b",
        r"(a|a)*b",
        r"(?:a*)*b",
        r"(?:a|aa){50}b",
        r"a*a*b",
        r"\s+\s+\S",
        r"a*b?a*c",
        r"a?a?a?a?a?a?aaaaaa",
        r"(a)\1",
        r"(?=a+)b",
        r"(?P<name>a)",
        r"a{1,100000}",
        r"a**",
        r"(a",
        "x" * 1_001,
    ],
)
def test_rejects_patterns_with_catastrophic_backtracking(pattern: str):
    with pytest.raises(ValueError, match="could take too long"):
        bounds.check_pattern(pattern)


def small_tokenizer() -> dict[str, Any]:
    """Return a valid tokenizer file with a vocabulary of three words."""
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1, "[UNK]": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    value: dict[str, Any] = json.loads(tokenizer.to_str())
    return value


def write_tokenizer(folder: Path, **changes: Any) -> Path:
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(small_tokenizer() | changes), encoding="utf-8")
    return file


def replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


def template(name: str, ids: list[int], n_times: int = 1) -> dict[str, Any]:
    part = {"SpecialToken": {"id": name, "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [*[part] * n_times, text],
        "pair": [text, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {name: {"id": name, "ids": ids, "tokens": [name] * len(ids)}},
    }


def test_valid_file_equals_the_library(tmp_path: Path):
    file = write_tokenizer(
        tmp_path, normalizer=replace("``", '"'), post_processor=template("b", [1])
    )
    ours, theirs = bounds.read_tokenizer(file), Tokenizer.from_file(str(file))
    assert ours.encode("a b ``a x").ids == theirs.encode("a b ``a x").ids
    assert bounds.n_ids_of(ours) == 3


def test_published_files_equal_the_library(minilm_folder: Path, smollm2_folder: Path):
    for folder in (minilm_folder, smollm2_folder):
        file = folder / "tokenizer.json"
        text = "The animal didn't cross 1234 streets — “naïve” 🙂\n\n  it was too tired"
        ours, theirs = bounds.read_tokenizer(file), Tokenizer.from_file(str(file))
        assert ours.encode(text).ids == theirs.encode(text).ids


MANY = {"type": "Sequence", "normalizers": [{"type": "NFC"}] * 9}
HOSTILE = {
    "character replaced with a long text": ({"normalizer": replace("a", "a" * 9)}, "length 9"),
    "long replacement in nested sequences": (
        {"normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Sequence", "normalizers": [replace("", "ab")]}]}},
        "length 0 with one of length 2",
    ),
    "too many steps": ({"normalizer": MANY}, "9 steps"),
    "long prefix": (
        {"normalizer": {"type": "Prepend", "prepend": "ab"}}, "more than one character"),
    "unknown step": ({"normalizer": {"type": "Grow"}}, "'Grow'"),
    "step that isn't an object": ({"pre_tokenizer": ["Split"]}, "a table"),
    "catastrophic backtracking in the pre-tokenizer": (
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+b"},
                           "behavior": "Isolated", "invert": False}},
        "could take too long",
    ),
    "catastrophic backtracking in the decoder": (
        {"decoder": {"type": "Replace", "pattern": {"Regex": "(a*)*b"}, "content": ""}},
        "could take too long",
    ),
    "damaged character map": (
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "?"}}, "damaged"),
    "unknown model": ({"model": {"type": "Neural"}}, "'Neural'"),
    "missing model": ({"model": None}, "no model"),
    "random merge dropout": (
        {"model": {"type": "BPE", "dropout": 0.5, "vocab": {}, "merges": []}}, "at random"),
    "unlimited word length": (
        {"model": {"type": "WordPiece", "vocab": {}, "max_input_chars_per_word": 10**9}},
        "1000000000",
    ),
    "too many special tokens": (
        {"post_processor": template("b", [1], 17)}, "17 tokens around"),
    "duplicated text": (
        {"post_processor": template("b", [1]) | {
            "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 2}},
        "2 copies",
    ),
    "special token beyond the vocabulary": (
        {"post_processor": template("b", [77])}, "77 .* only has 3"),
    "very long token": (
        {"model": {"type": "WordLevel", "vocab": {"a" * 2_001: 0}, "unk_token": "?"}},
        "2,001 characters",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_rejects_hostile_files(case: str, tmp_path: Path):
    changes, message = HOSTILE[case]
    with pytest.raises(ValueError, match=message):
        bounds.read_tokenizer(write_tokenizer(tmp_path, **changes))


def test_damaged_file_gives_a_clear_error(tmp_path: Path):
    with pytest.raises(ValueError, match="is damaged"):
        bounds.read_tokenizer(write_tokenizer(tmp_path, model={"type": "WordLevel"}))
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match="valid JSON"):
        bounds.read_tokenizer(tmp_path / "tokenizer.json")


def test_library_panic_becomes_a_value_error():
    """A Rust panic isn't an Exception, so no other handler would catch it."""
    tokenizer = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("(a+)+b"), "isolated")
    with (
        pytest.raises(ValueError, match="can't process this text") as raised,
        bounds.library_errors("The tokenizer can't process this text"),
    ):
        tokenizer.encode("a" * 60)
    assert type(raised.value.__cause__).__name__ == "PanicException"


def test_keyboard_interrupt_is_not_converted():
    with pytest.raises(KeyboardInterrupt), bounds.library_errors("The tokenizer"):
        raise KeyboardInterrupt
