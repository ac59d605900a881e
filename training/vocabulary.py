"""GPT-2's byte pairs, reduced to the tokens that the novels use most.

GPT-2's full vocabulary of 50,257 tokens would be three quarters of a small model's weights. This
one has the 256 bytes, so that any text can be encoded, and the most frequent pieces together with
the pieces they're merged from. If all pieces of a word are in it, the word is split as in GPT-2,
otherwise into smaller pieces. Tokens get new ids.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

SIZE = 8192
END, MASK = "<|endoftext|>", "[MASK]"


def build_tokenizer(
    merges: Iterable[tuple[str, str]], books: Iterable[str], size: int = SIZE
) -> Tokenizer:
    """A tokenizer with the `size` pieces that are most frequent in the books.

    merges: GPT-2's merge list, in its order and spelling.
    Raises: ValueError if `size` is too small for the bytes and the two special tokens.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    if size < len(alphabet) + 2:
        raise ValueError(f"size must be at least {len(alphabet) + 2}, got {size}")
    merges = list(merges)
    parents = {left + right: (left, right) for left, right in merges}
    whole = _tokenizer([*alphabet, *parents], merges)
    counts: Counter[str] = Counter()
    for encoding in whole.encode_batch(list(books), add_special_tokens=False):
        counts.update(encoding.tokens)
    kept: set[str] = set(alphabet)
    for piece, _ in counts.most_common():
        new = _with_parents(piece, parents) - kept
        if len(kept) + len(new) + 2 <= size:
            kept |= new
    pieces = [*alphabet, *(piece for piece in parents if piece in kept)]
    rules = [pair for pair in merges if pair[0] + pair[1] in kept]
    tokenizer = _tokenizer(pieces, rules)
    tokenizer.add_special_tokens([AddedToken(END, special=True), AddedToken(MASK, special=True)])
    return tokenizer


def _with_parents(piece: str, parents: dict[str, tuple[str, str]]) -> set[str]:
    """The piece and all pieces it's merged from, down to the bytes."""
    pieces, open_ = set(), [piece]
    while open_:
        current = open_.pop()
        pieces.add(current)
        open_.extend(parents.get(current, ()))
    return pieces


def _tokenizer(pieces: Iterable[str], merges: list[tuple[str, str]]) -> Tokenizer:
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def special_ids(tokenizer: Tokenizer) -> tuple[int, int]:
    """The ids of the end-of-text token and the mask; smaller ids are pieces.

    Raises: ValueError if the tokenizer lacks one of them.
    """
    end, mask = tokenizer.token_to_id(END), tokenizer.token_to_id(MASK)
    if end is None or mask is None:
        raise ValueError(f"the tokenizer needs the tokens {END} and {MASK}")
    return end, mask


def save(tokenizer: Tokenizer, file: Path) -> None:
    """Write the tokenizer as a tokenizer.json file."""
    file.write_text(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False), "utf-8")
