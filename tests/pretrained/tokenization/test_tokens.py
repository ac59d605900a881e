"""Tokens: ids, spans from bytes, labels, and unusual input."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pretrained.tokenization import gpt2 as gpt2_bpe
from pretrained.tokenization.bpe import FastBpe
from pretrained.tokenization.gpt2 import Gpt2Bpe
from pretrained.tokenization.selection import tokenizer_for_folder
from pretrained.tokenization.tokens import (
    Tokenizer,
    clean,
    printable,
)
from pretrained.tokenization.wordpiece import WordPiece
from tests.helpers.texts import TEXTS


@pytest.fixture(scope="module")
def gpt2(bundled_weights: None) -> Gpt2Bpe:
    return gpt2_bpe.gpt2()


@pytest.fixture(scope="module")
def smollm2(smollm2_folder: Path) -> FastBpe:
    return FastBpe.from_folder(smollm2_folder, {"eos_token_id": 2})


@pytest.fixture(scope="module")
def minilm(minilm_folder: Path) -> WordPiece:
    return WordPiece.from_folder(minilm_folder)


@pytest.fixture(params=["gpt2", "smollm2"])
def byte_level(request: pytest.FixtureRequest, bundled_weights: None) -> Gpt2Bpe | FastBpe:
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["gpt2", "smollm2", "minilm"])
def tokenizer(request: pytest.FixtureRequest, bundled_weights: None) -> Tokenizer:
    return request.getfixturevalue(request.param)


def test_gpt2_ids_of_the_lecture_sentence(gpt2: Gpt2Bpe) -> None:
    tokens = gpt2.encode("The next day is bright and sunny")
    assert tokens.ids == (464, 1306, 1110, 318, 6016, 290, 27737)
    assert tokens.pieces == ("The", " next", " day", " is", " bright", " and", " sunny")
    assert tokens.spans[1] == (3, 8)
    assert tokens.labels[1] == "next"


@pytest.mark.parametrize("text", TEXTS)
def test_byte_level_round_trip(byte_level: Gpt2Bpe | FastBpe, text: str) -> None:
    tokens = byte_level.encode(text)
    assert tokens.text == text
    assert byte_level.decode_bytes(tokens.ids) == text.encode()
    assert byte_level.decode(tokens.ids) == text


@pytest.mark.parametrize("text", TEXTS)
def test_character_spans_cover_the_tokens_with_its_bytes(
    byte_level: Gpt2Bpe | FastBpe, text: str
) -> None:
    tokens = byte_level.encode(text)
    # independent count: find the token and the character of every byte
    token_of = [n for n, index in enumerate(tokens.ids) for _ in byte_level.decode_bytes([index])]
    char_of = [n for n, char in enumerate(text) for _ in char.encode()]
    expected = {(n, c) for n, c in zip(token_of, char_of, strict=True)}
    results = {(n, c) for n, (start, end) in enumerate(tokens.spans) for c in range(start, end)}
    assert results == expected


@pytest.mark.parametrize("text", TEXTS)
def test_labels_are_unique_short_and_printable(tokenizer: Tokenizer, text: str) -> None:
    labels = tokenizer.encode(text).labels
    assert len(set(labels)) == len(labels)
    for label in labels:
        assert label.isprintable()
        assert label.strip() == label != ""
        assert len(label) < 40


@pytest.mark.parametrize("emoji", ["\U0001f9ff", "\U0001fae0", "\U00013000"])
def test_partial_characters_are_labeled_by_their_bytes(
    byte_level: Gpt2Bpe | FastBpe, emoji: str
) -> None:
    text = f"It {emoji}!"
    tokens = byte_level.encode(text)
    parts = [n for n, span in enumerate(tokens.spans) if 3 in range(*span)]
    assert len(parts) > 1, "choose a character that this vocabulary splits"
    assert not any("\ufffd" in label for label in tokens.labels)
    # the labels contain the bytes of the space and the character
    label_text = "".join(tokens.labels[n].rstrip("₂₃₄") for n in range(1, parts[-1] + 1))
    assert label_text.strip("␣") == "".join(f"<{byte:02X}>" for byte in emoji.encode())
    assert all(tokens.spans[n][1] == 4 for n in parts)
    assert tokens.labels[-1] == "!"
    assert len(set(tokens.labels)) == len(tokens)
    assert byte_level.decode(tokens.ids) == text
    assert byte_level.decode(tokens.ids[: parts[0] + 1]).endswith("\ufffd")


@pytest.mark.parametrize("text", TEXTS)
def test_spans_are_inside_the_text_and_in_order(tokenizer: Tokenizer, text: str) -> None:
    tokens = tokenizer.encode(text)
    assert all(0 <= start <= end <= len(text) for start, end in tokens.spans)
    starts = [start for start, _ in tokens.spans]
    assert starts == sorted(starts)


def test_typed_special_tokens_are_ordinary_text_for_decoders(gpt2: Gpt2Bpe) -> None:
    tokens = gpt2.encode("a<|endoftext|>b")
    assert gpt2.end_ids == {50256}
    assert not gpt2.end_ids & set(tokens.ids)
    assert gpt2.decode([50256]) == "<|endoftext|>"


def test_typed_special_tokens_are_ordinary_text_for_smollm2(smollm2: FastBpe) -> None:
    tokens = smollm2.encode("<|im_start|>x<|im_end|><|endoftext|>")
    assert min(tokens.ids) > 16  # ids 0 to 16 are special tokens
    assert not any(tokens.special)
    assert smollm2.end_ids == {0, 2}
    assert smollm2.decode([1, 2]) == "<|im_start|><|im_end|>"


def test_bytes_missing_from_smollm2_do_not_shift_spans(smollm2: FastBpe) -> None:
    """SmolLM2's vocabulary lacks some control characters, so the library drops them."""
    assert smollm2.id_of(b"\x13") is None
    tokens = smollm2.encode("ab\x12\x13\x14\x15cd\x13 the")
    parts = [tokens.text[start:end] for start, end in tokens.spans]
    assert parts == ["ab", "\x12", "\x15", "cd", " the"]
    assert list(tokens.raw) == [part.encode() for part in parts]


def test_typed_mask_is_the_mask_token(minilm: WordPiece) -> None:
    text = "Paris is the [MASK] of France."
    tokens = minilm.encode(text)
    position = tokens.ids.index(minilm.mask_id)
    assert tokens.special[position]
    assert text[slice(*tokens.spans[position])] == "[MASK]"
    assert (tokens.ids[0], tokens.ids[-1]) == (minilm.cls_id, minilm.sep_id)
    assert tokens.spans[0] == (0, 0)
    assert tokens.spans[-1] == (len(text), len(text))


def test_wordpiece_spans_refer_to_the_original_text(minilm: WordPiece) -> None:
    text = "Naïve  CAFÉ, unaffable 日本 don't"
    tokens = minilm.encode(text)
    words = [text[start:end] for start, end in tokens.spans]
    assert words[1:-1] == [
        "Naïve",
        "CAFÉ",
        ",",
        "una",
        "ffa",
        "ble",
        "日",
        "本",
        "don",
        "'",
        "t",
    ]
    assert tokens.pieces[1:3] == ("naive", "cafe")
    assert "##ffa" in tokens.labels


def test_vocab_txt_gives_the_same_tokens(
    minilm: WordPiece, minilm_folder: Path, tmp_path: Path
) -> None:
    shutil.copy(minilm_folder / "vocab.txt", tmp_path)
    from_vocab = WordPiece.from_folder(tmp_path)
    assert from_vocab.vocab_size == minilm.vocab_size
    for text in TEXTS:
        assert from_vocab.encode(text) == minilm.encode(text)


@pytest.mark.parametrize("text", ["x" * 100_000, " " * 100_000, "日本" * 50_000])
def test_long_texts(tokenizer: Tokenizer, text: str) -> None:
    tokens = tokenizer.encode(text)
    assert len(set(tokens.labels)) == len(tokens)
    assert tokens.text == text


def test_lone_surrogates_do_not_raise(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode("a\ud800b")
    assert tokens.text == "a\ufffdb" == clean("a\ud800b")


@pytest.mark.parametrize(
    ("piece", "label"),
    [
        (" the", "␣the"),
        ("\x00", "\\x00"),
        ("\u200d", "\\u{200d}"),
        ("\u0301", "◌\u0301"),
        ("", "∅"),
        ("x" * 99, "x" * 23 + "…"),
        (" é".encode(), "␣é"),
        (b" \xf0\x9f", "␣<F0><9F>"),
        (b"\xa9a", "<A9>a"),
        (b"\xff" * 9, "<FF>" * 5 + "<FF…"),
        (b"", "∅"),
    ],
)
def test_printable(piece: str | bytes, label: str) -> None:
    assert printable(piece) == label


# Selecting the tokenizer of a folder


@pytest.fixture
def gpt2_files(tmp_path: Path, bundled_weights: None) -> Path:
    """Create a folder with GPT-2's vocabulary, as on the Hub."""
    merges, vocabulary = next(gpt2_bpe._gpt2_files(None))
    shutil.copy(merges, tmp_path / "merges.txt")
    shutil.copy(vocabulary, tmp_path / "vocab.json")
    return tmp_path


def test_folder_with_gpt2_vocabulary_uses_tiktoken(gpt2_files: Path) -> None:
    config = {"model_type": "gpt2", "vocab_size": 50257}
    assert isinstance(tokenizer_for_folder(gpt2_files, config), Gpt2Bpe)
    # also as a tokenizer.json
    FastBpe.from_folder(gpt2_files, config)._tokenizer.save(str(gpt2_files / "tokenizer.json"))
    assert isinstance(tokenizer_for_folder(gpt2_files, config), Gpt2Bpe)


def test_tokenizers_library_agrees_with_tiktoken(gpt2_files: Path, gpt2: Gpt2Bpe) -> None:
    fast = FastBpe.from_folder(gpt2_files, {})
    for text in TEXTS:
        if "<|" not in text:  # the files don't mark <|endoftext|> as special
            assert fast.encode(text) == gpt2.encode(text)


def test_modified_vocabulary_does_not_use_tiktoken(gpt2_files: Path) -> None:
    vocabulary = json.loads((gpt2_files / "vocab.json").read_text())
    first, second = list(vocabulary)[1000:1002]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (gpt2_files / "vocab.json").write_text(json.dumps(vocabulary))
    assert isinstance(tokenizer_for_folder(gpt2_files, {"model_type": "gpt2"}), FastBpe)


@pytest.mark.parametrize("model_type", ["gpt2", "llama", "bert"])
def test_damaged_tokenizer_files(model_type: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"model": 3}')
    with pytest.raises(ValueError, match="damaged"):
        tokenizer_for_folder(tmp_path, {"model_type": model_type, "vocab_size": 77})


def test_added_begin_token_has_an_empty_span(tmp_path: Path) -> None:
    """Use a file like Llama 2's: SentencePiece with byte fallback and a begin token."""
    from tokenizers import Tokenizer as Fast
    from tokenizers import decoders, models, normalizers, processors

    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2, "▁": 3, "a": 4, "▁a": 5, "b": 6}
    vocabulary |= {f"<0x{byte:02X}>": 7 + byte for byte in range(256)}
    fast = Fast(
        models.BPE(vocabulary, [("▁", "a")], unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    fast.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    fast.add_special_tokens(["<s>", "</s>"])
    fast.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    fast.decoder = decoders.Fuse()
    fast.save(str(tmp_path / "tokenizer.json"))
    tokenizer = tokenizer_for_folder(tmp_path, {"model_type": "llama", "eos_token_id": [2]})
    tokens = tokenizer.encode("a bé")
    assert tokens.ids[0] == 1
    assert tokens.special == (True, *(False,) * (len(tokens) - 1))
    assert tokens.spans == ((0, 0), (0, 1), (1, 2), (2, 3), (3, 4), (3, 4))
    assert tokenizer.end_ids == {2}
    assert tokenizer.decode_bytes(tokens.ids[1:]) == " a bé".encode()


NO_TEXTS = [5, None, b"..", ["a", "b"]]


@pytest.mark.parametrize("text", NO_TEXTS, ids=repr)
def test_rejects_input_that_is_not_a_string(tokenizer: Tokenizer, text: Any) -> None:
    for method in (tokenizer.encode, tokenizer.words):  # type: ignore[attr-defined]
        with pytest.raises(ValueError, match=type(text).__name__):
            method(text)


NO_IDS = [5, None, "12", [1.5], [True], [[1]], [-1], [10**9]]


@pytest.mark.parametrize("ids", NO_IDS, ids=repr)
def test_rejects_input_that_is_not_a_list_of_ids(tokenizer: Tokenizer, ids: Any) -> None:
    for method in (tokenizer.decode, tokenizer.decode_bytes):
        with pytest.raises(ValueError, match=r"[Tt]oken"):
            method(ids)


def test_accepts_numpy_ids(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("The next day").ids
    assert tokenizer.decode(np.array(ids)) == tokenizer.decode(ids)  # type: ignore[arg-type]
