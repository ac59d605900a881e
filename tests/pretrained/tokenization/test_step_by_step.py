"""Step-by-step tokenization ends with the tokenizer's own tokens."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import decoders, models, pre_tokenizers

from pretrained.tokenization import gpt2 as gpt2_bpe
from pretrained.tokenization.bpe import FastBpe
from pretrained.tokenization.gpt2 import Gpt2Bpe
from pretrained.tokenization.step_by_step import match_steps, merge_steps
from pretrained.tokenization.wordpiece import WordPiece
from tests.helpers.texts import TEXTS

PROSE = (
    "The animal didn't cross the street because it was too tired. Antidisestablishmentarianism "
    "unbelievably internationalization supercalifragilistic tokenization whatsoever 3.14159 "
    "def attend(q, k, v):\n    return softmax(q @ k.T / sqrt(d)) @ v  # x_1 != y2 &&  aaaaaaaa "
    "Donaudampfschifffahrtsgesellschaft Übergrößenträger ŝanĝiĝis Çağrı "
    "שלום עולם مرحبا بالعالم नमस्ते дорога ελευθερία 漢字仮名 한국어 😀👍🏽🇩🇪 ﬁ ½ ﷺ"
)


@pytest.fixture(scope="module")
def gpt2(bundled_weights: None) -> Gpt2Bpe:
    return gpt2_bpe.gpt2()


@pytest.fixture(scope="module")
def smollm2(smollm2_folder: Path) -> FastBpe:
    return FastBpe.from_folder(smollm2_folder, {})


@pytest.fixture(scope="module")
def minilm(minilm_folder: Path) -> WordPiece:
    return WordPiece.from_folder(minilm_folder)


@pytest.fixture(params=["gpt2", "smollm2"])
def byte_level(request: pytest.FixtureRequest, bundled_weights: None) -> Gpt2Bpe | FastBpe:
    return request.getfixturevalue(request.param)


def random_texts() -> list[str]:
    """Return random sequences of characters from several scripts and of emoji."""
    draw = random.Random(7)
    ranges = ((0x20, 0x7F), (0xA0, 0x250), (0x370, 0x700), (0x900, 0xA00), (0x4E00, 0x5000),
              (0x1F300, 0x1F650))  # fmt: skip
    texts = []
    for _ in range(30):
        first, last = draw.choice(ranges)
        texts.append("".join(chr(draw.randrange(first, last)) for _ in range(draw.randrange(1, 9))))
    return [*texts, *(" ".join(texts[i : i + 3]) for i in range(0, 30, 3))]


@pytest.mark.parametrize("text", [*TEXTS, PROSE, *random_texts()])
def test_merges_end_with_the_tokens_of_the_tokenizer(byte_level: Gpt2Bpe | FastBpe, text: str):
    ranks, ids = byte_level.merge_ranks, []
    words = byte_level.words(text)
    assert "".join(words) == text
    for word in words:
        steps = merge_steps(word.encode(), ranks)
        final = [byte_level.id_of(part) for part in steps[-1].parts]
        assert tuple(final) == byte_level.encode(word).ids
        ids += final
    assert tuple(ids) == byte_level.encode(text).ids


def test_every_step_merges_one_pair(byte_level: Gpt2Bpe | FastBpe):
    word = b" unbelievably"
    steps = merge_steps(word, byte_level.merge_ranks)
    assert steps[0].parts == tuple(bytes([byte]) for byte in word)
    assert (steps[0].merged, steps[0].rank) == (None, None)
    for before, step in zip(steps, steps[1:], strict=False):
        assert b"".join(step.parts) == word
        at = step.merged
        assert at is not None
        pair = (before.parts[at], before.parts[at + 1])
        assert step.parts == (*before.parts[:at], pair[0] + pair[1], *before.parts[at + 2 :])
        assert step.rank == byte_level.merge_ranks[pair]
        # no other adjacent pair has a lower rank
        pairs = zip(before.parts, before.parts[1:], strict=False)
        assert step.rank == min(byte_level.merge_ranks.get(candidate, 10**9) for candidate in pairs)
        # every intermediate part is a token, too
        assert all(byte_level.id_of(part) is not None for part in step.parts)


def test_merges_of_known_words():
    ranks = {(b"l", b"o"): 0, (b"lo", b"w"): 1, (b"e", b"r"): 2, (b"a", b"a"): 3}
    steps = merge_steps(b"lower", ranks)
    assert [step.parts for step in steps[1:]] == [
        (b"lo", b"w", b"e", b"r"),
        (b"low", b"e", b"r"),
        (b"low", b"er"),
    ]
    assert [step.rank for step in steps] == [None, 0, 1, 2]
    # the leftmost of equal pairs is merged first, which removes the overlapping one
    assert merge_steps(b"aaa", ranks)[-1].parts == (b"aa", b"a")
    assert len(merge_steps(b"x", ranks)) == 1


@pytest.mark.parametrize("text", [*TEXTS, PROSE, *random_texts()])
def test_longest_matches_equal_the_tokenizer(minilm: WordPiece, text: str):
    ids = []
    for word in minilm.words(text):
        steps = match_steps(word, minilm.id_of)
        ids += [step.id for step in steps]
        if steps[0].piece != "[UNK]":
            assert "".join(word[step.start : step.end] for step in steps) == word
    tokens = minilm.encode(text)
    own = [i for i, special in zip(tokens.ids, tokens.special, strict=True) if not special]
    assert ids == own


def test_longest_match_of_known_words():
    vocabulary = {"[UNK]": 0, "un": 1, "##able": 2, "##a": 3, "u": 4}
    steps = match_steps("unable", vocabulary.get)
    assert [(s.piece, s.id, s.start, s.end) for s in steps] == [
        ("un", 1, 0, 2),
        ("##able", 2, 2, 6),
    ]
    assert steps[0].tried == ("unable", "unabl", "unab", "una")
    assert steps[1].tried == ()
    (unknown,) = match_steps("unx", vocabulary.get)
    assert (unknown.piece, unknown.id, unknown.start, unknown.end) == ("[UNK]", 0, 0, 3)
    (long,) = match_steps("u" * 101, vocabulary.get)
    assert long.piece == "[UNK]"


def test_rejects_vocabularies_that_are_not_byte_level():
    tokenizer = FastTokenizer(models.BPE(vocab={"a": 0, "b": 1, "ab": 2}, merges=[("a", "b")]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.Fuse()
    with pytest.raises(ValueError, match="byte-level"):
        FastBpe(tokenizer).words("ab")
