"""Test token labels, including ids in a padded vocabulary that have no token."""

from pathlib import Path

import pytest

from pretrained import Tokenizer
from pretrained.tokenization.bpe import FastBpe
from pretrained.tokenization.wordpiece import WordPiece
from serving import token_text
from tests.helpers.hostile_models import save_tokenizer


@pytest.fixture(params=["gpt2", "bert"])
def tokenizer(request: pytest.FixtureRequest, tmp_path: Path) -> Tokenizer:
    save_tokenizer(tmp_path, request.param, 290)
    if request.param == "bert":
        return WordPiece.from_folder(tmp_path)
    return FastBpe.from_folder(tmp_path, {})


def test_id_without_a_token_has_a_placeholder(tokenizer: Tokenizer):
    known = [i for i in tokenizer.encode("animal street").ids if i not in (2, 3)]
    ids = [290, *known, 4362, 4363]
    text = token_text.decode(tokenizer, ids)
    assert text == f"<unknown:290>{tokenizer.decode(known)}<unknown:4362><unknown:4363>"
    assert token_text.decode_bytes(tokenizer, ids) == text.encode()
    pieces = token_text.pieces(tokenizer, ids)
    assert (pieces[0], pieces[-1]) == ("<unknown:290>", "<unknown:4363>")
    assert pieces[1:-2] == token_text.pieces(tokenizer, known)
    assert len(set(token_text.labels(tokenizer, [*ids, 4362]))) == len(ids) + 1
