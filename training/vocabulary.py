"""GPT-2's byte pairs, cut to the tokens that the novels use most.

A whole vocabulary of 50,257 tokens would be three quarters of a small model's weights. What is
left here are pieces of GPT-2's own: the 256 bytes, so that every text has tokens, and with every
piece the pieces that it is merged from. A word all of whose pieces are left is cut as GPT-2 cuts
it; another one is cut into smaller pieces. The numbers of the tokens are new.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

SIZE = 8192
END, MASK = "<|endoftext|>", "[MASK]"


def cut(merges: Iterable[tuple[str, str]], books: Iterable[str], size: int = SIZE) -> Tokenizer:
    """The tokenizer with `size` tokens whose pieces are the most frequent in the books.

    merges: GPT-2's merge list, in its order and spelling.
    Raises: ValueError if `size` leaves no room beside the bytes and the two special tokens.
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
    """The piece and all pieces that it is merged from, down to the bytes."""
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
    """The numbers of the end of a text and of the mask; tokens with smaller ones are pieces.

    Raises: ValueError for a tokenizer without them.
    """
    end, mask = tokenizer.token_to_id(END), tokenizer.token_to_id(MASK)
    if end is None or mask is None:
        raise ValueError(f"the tokenizer has no {END} or no {MASK}")
    return end, mask


def save(tokenizer: Tokenizer, file: Path) -> None:
    """Write the tokenizer as a tokenizer.json, a line for each entry."""
    file.write_text(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False), "utf-8")
