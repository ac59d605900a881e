"""Alignment by characters, with real tokenizers and texts that break naive methods."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from pretrained.tokenization import alignment, gpt2
from pretrained.tokenization.alignment import Alignment, aligned, aligned_words, group_labels, words
from pretrained.tokenization.bpe import FastBpe
from pretrained.tokenization.tokens import Tokenizer, Tokens
from pretrained.tokenization.wordpiece import WordPiece

FAMILY = "👩\u200d👩\u200d👧\u200d👦"
TEXTS = [
    "",
    " ",
    "The animal didn't cross the street, because we'll see: it’s too tired.",
    "café naïve Ångström Zürich",
    "cafe\u0301 nai\u0308ve A\u030angstro\u0308m",
    f"{FAMILY} family, 🇩🇪🇫🇷 flags, 👍🏽 thumb ❤\ufe0fheart",
    "In 2023, 13,023 + 0.5 = 1e-5 ... (yes).",
    "two  spaces   three\tand a tab \n\n new lines\r\n end ",
    "今日は良い天気です。한국어 中文",
    "שלום עולם! مرحبا بالعالم \u202etext\u202c",
    "a\x00b \ufeffbom \u2028 line",
    "[MASK] typed, <|endoftext|> too",
]
PAIRS = [("gpt2", "smollm2"), ("minilm", "gpt2"), ("smollm2", "minilm")]


@pytest.fixture(scope="module")
def tokenizers(smollm2_folder: Path, minilm_folder: Path) -> dict[str, Tokenizer]:
    return {
        "gpt2": gpt2.gpt2(),
        "smollm2": FastBpe.from_folder(smollm2_folder, {"eos_token_id": 2}),
        "minilm": WordPiece.from_folder(minilm_folder),
    }


def tokens_of_characters(tokens: Tokens) -> list[set[int]]:
    """Return, for each character, the tokens whose span contains it."""
    return [
        {n for n, (start, end) in enumerate(tokens.spans) if start <= c < end}
        for c in range(len(tokens.text))
    ]


def check_partition(alignment: Alignment, a: Tokens, b: Tokens) -> None:
    for tokens, groups in (
        (a, [*(unit.a for unit in alignment.units), *alignment.only_a]),
        (b, [*(unit.b for unit in alignment.units), *alignment.only_b]),
    ):
        members = [token for group in groups for token in group]
        assert sorted(members) == list(range(len(tokens)))
        assert all(list(g) == list(range(g[0], g[-1] + 1)) for g in groups), "neighbours"


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("align", [aligned, aligned_words])
def test_tokens_that_share_a_character_are_in_one_unit(
    tokenizers: dict[str, Tokenizer], pair: tuple[str, str], text: str, align
) -> None:
    a, b = (tokenizers[name].encode(text) for name in pair)
    alignment = align(a, b)
    check_partition(alignment, a, b)
    unit_of = {
        "a": alignment.unit_of("a", len(a)),
        "b": alignment.unit_of("b", len(b)),
    }
    for in_a, in_b in zip(tokens_of_characters(a), tokens_of_characters(b), strict=True):
        # all tokens that contain a character are in the same unit on both sides
        units = {unit_of["a"][n] for n in in_a} | {unit_of["b"][n] for n in in_b}
        assert len(units) <= 1
        if in_a and in_b:
            assert units != {-1}, "held on both sides, so aligned"


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("text", TEXTS)
def test_units_are_minimal(
    tokenizers: dict[str, Tokenizer], pair: tuple[str, str], text: str
) -> None:
    """Every boundary inside a unit is in the middle of some token."""
    a, b = (tokenizers[name].encode(text) for name in pair)
    for unit in aligned(a, b).units:
        spans = [a.spans[n] for n in unit.a] + [b.spans[n] for n in unit.b]
        if all(start == end for start, end in spans):
            continue  # [CLS] aligned with [CLS]
        low, high = min(s for s, _ in spans), max(e for _, e in spans)
        for boundary in range(low + 1, high):
            is_inside_token = any(start < boundary < end for start, end in spans)
            # in an encoder, no token may cover a combining mark
            is_mark = unicodedata.combining(a.text[boundary]) or unicodedata.combining(
                a.text[boundary - 1]
            )
            assert is_inside_token or is_mark


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The animal didn't stop.", ["The", "animal", "didn't", "stop", "."]),
        ("it’s  well-known\n\nthat", ["it’s", "well", "-", "known", "that"]),
        ("cafe\u0301 naïve", ["cafe\u0301", "naïve"]),
        ("👍🏽 ok", ["👍🏽", "ok"]),
        ("in 2023, yes", ["in", "2023", ",", "yes"]),
        ("日本 です", ["日", "本", "です"]),
        ("שלום עולם", ["שלום", "עולם"]),
    ],
)
@pytest.mark.parametrize("name", ["gpt2", "smollm2", "minilm"])
def test_words_of_known_texts(
    tokenizers: dict[str, Tokenizer], name: str, text: str, expected: list[str]
) -> None:
    tokens = tokenizers[name].encode(text)
    results = [label for label in group_labels(tokens, words(tokens)) if label[0] != "["]
    assert results == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("🇩🇪🇫🇷🇪", ["🇩🇪", "🇫🇷", "🇪"]),  # regional indicators come in pairs
        ("👩‍🚀👨‍👩‍👧‍👦!", ["👩‍🚀", "👨‍👩‍👧‍👦", "!"]),
        ("❤️‍🔥1️⃣ #️⃣", ["❤️‍🔥", "1️⃣", "#️⃣"]),
        ("👍🏽👍🏿", ["👍🏽", "👍🏿"]),
        # precomposed and decomposed
        ("한국어 \u1112\u1161\u11ab", ["한국어", "\u1112\u1161\u11ab"]),
        ("क्षत्रिय हिन्दी।", ["क्षत्रिय", "हिन्दी", "।"]),  # conjuncts
        ("မြန်မာစာ", ["မြန်မာစာ"]),  # with a vowel sign that is a separate character
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("rock'n’roll 'a' don''t", ["rock'n’roll", "'", "a", "'", "don", "'", "'", "t"]),
        ("a\r\nb \u0301c", ["a", "b", "\u0301", "c"]),
    ],
)
def test_grapheme_clusters_are_never_split(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in alignment._word_spans(text)] == expected


def test_units_of_a_known_text(tokenizers: dict[str, Tokenizer]) -> None:
    a = tokenizers["minilm"].encode("We didn't say so...")
    b = tokenizers["gpt2"].encode("We didn't say so...")
    alignment = aligned(a, b)
    assert a.pieces[2:5] == ("didn", "'", "t")
    assert b.pieces[1:3] == (" didn", "'t")
    assert [(unit.a, unit.b) for unit in alignment.units] == [
        ((1,), (0,)),
        ((2,), (1,)),
        ((3, 4), (2,)),
        ((5,), (3,)),
        ((6,), (4,)),
        ((7, 8, 9), (5,)),
    ]
    assert [unit.label_a for unit in alignment.units] == ["We", "didn", "'t", "say", "so", "..."]
    assert alignment.only_a == ((0,), (10,))  # [CLS], [SEP]
    assert alignment.only_b == ()
    assert alignment.unit_of("a", 11) == (-1, 0, 1, 2, 2, 3, 4, 5, 5, 5, -1)
    merged = aligned_words(a, b)
    assert [(unit.a, unit.b) for unit in merged.units][1] == ((2, 3, 4), (1, 2))
    with pytest.raises(ValueError, match="'c'"):
        alignment.unit_of("c", 11)
    with pytest.raises(ValueError, match="token 9.*is 9"):
        alignment.unit_of("a", 9)


def test_sentences_align_by_common_words(tokenizers: dict[str, Tokenizer]) -> None:
    a = tokenizers["minilm"].encode("The animal didn't cross it because it was too tired")
    b = tokenizers["gpt2"].encode("the animal will cross because it was too wide")
    alignment = aligned(a, b)
    check_partition(alignment, a, b)
    assert [unit.label_a for unit in alignment.units] == [
        "The",
        "animal",
        "cross",
        "because",
        "it",
        "was",
        "too",
    ]
    assert a.labels[alignment.units[4].a[0]] == "it₂"  # the one before "was"
    unaligned = {label for group in alignment.only_a for label in group_labels(a, [group])}
    assert unaligned == {"[CLS]", "didn", "'", "t", "it", "tired", "[SEP]"}
    assert group_labels(b, alignment.only_b) == ("will", "wide")
