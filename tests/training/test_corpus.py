"""The books, their split, and the reduced vocabulary."""

import numpy as np
import pytest
from tokenizers import pre_tokenizers

from training.corpus import HELD_OUT, encode, load_or_encode, split, unwrap
from training.vocabulary import END, MASK, build_tokenizer, special_ids

LONG = "This line is as long as the lines of a wrapped book are, and it"
# Merges in GPT-2's notation, where Ġ is a space.
MERGES = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("a", "t"), ("c", "at"), ("q", "u"), ("Ġ", "c")]
BOOK = "the cat the the"


def test_lines_of_a_paragraph_are_joined():
    assert unwrap(f"TITLE\n{LONG}\r\ngoes on.\n\n{LONG}\n") == (f"TITLE\n{LONG} goes on.\n{LONG} ")
    assert unwrap(f"{LONG}\n\nNext.") == f"{LONG}\nNext.\n"


def test_train_and_held_out_books_do_not_overlap():
    names = [*HELD_OUT, "Author_Book_1900"]
    train, held_out = split({name: name for name in names})
    assert list(train) == ["Author_Book_1900"]
    assert sorted(held_out) == sorted(HELD_OUT)


def test_reduced_vocabulary():
    tokenizer = build_tokenizer(MERGES, [BOOK], size=256 + 3 + 2)
    vocabulary = set(tokenizer.get_vocab()) - set(pre_tokenizers.ByteLevel.alphabet())
    # " the" is the most frequent piece and requires "the" and "th"; "cat" and "at" don't fit
    assert vocabulary == {"th", "the", "Ġthe", END, MASK}
    assert special_ids(tokenizer) == (259, 260)
    assert tokenizer.encode("the cat").tokens == ["the", "Ġ", "c", "a", "t"]
    tokenizer = build_tokenizer(MERGES, [BOOK], size=256 + 5 + 2)
    assert tokenizer.encode("the cat").tokens == ["the", "Ġ", "cat"]  # no book has "qu"


@pytest.mark.parametrize("text", ["", "zebra", "naïve 猫 🙂\x00\ud7ff", f"{END} {MASK}"])
def test_decoding_restores_every_text(text: str):
    tokenizer = build_tokenizer(MERGES, [BOOK], size=300)
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_encoded_books_are_cached(tmp_path):
    tokenizer = build_tokenizer(MERGES, [BOOK], size=300)
    end, _ = special_ids(tokenizer)
    ids = encode({"a": "at", "b": "the cat"}, tokenizer, end)
    assert ids.dtype == np.uint16
    expected = [*tokenizer.encode("at").ids, end, *tokenizer.encode("the cat").ids, end]
    assert ids.tolist() == expected
    books = tmp_path / "books"
    books.mkdir()
    (books / "Author_Book_1900.txt").write_text("the cat")
    (books / f"{HELD_OUT[0]}.txt").write_text("at")
    first = load_or_encode(books, tokenizer, end, tmp_path / "kept")
    for file in books.iterdir():
        file.unlink()  # cached ids don't need the books
    cached = load_or_encode(books, tokenizer, end, tmp_path / "kept")
    assert first.train.tolist() == cached.train.tolist()
    assert cached.held_out.tolist() == encode({"a": "at\n"}, tokenizer, end).tolist()
