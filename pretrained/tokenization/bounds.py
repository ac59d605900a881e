"""Limits on tokenizer files, so that untrusted ones can't use too much memory or time.

A tokenizer.json is like a small program that replaces characters by longer texts, searches with
patterns and adds tokens. The library has no limits, so a malicious file could use up all memory,
which ends the process, or search for hours. So we check every step of the file before the library
reads it, and reject a file with an unknown or unlimited step.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pretrained.checkpoint import read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer as FastTokenizer

MAX_TOKENIZER_BYTES = 64_000_000
MAX_STEPS = 8  # per kind: published files have at most four
MAX_PIECE_CHARACTERS = 2_000  # per token: in published files, the longest are runs of spaces
MAX_WORD_CHARACTERS = 1_000  # per word for WordPiece, whose time grows with the square
MAX_ADDED_TOKENS = 16  # around a text
MAX_PATTERN_CHARACTERS = 1_000
MAX_OPTIONAL = 4  # optional pieces per branch of a pattern: each one doubles the search

# Steps that make a text at most a few times as long.
_PLAIN = frozenset(
    {
        "BertNormalizer", "BertPreTokenizer", "ByteFallback", "ByteLevel", "CharDelimiterSplit",
        "Digits", "Fuse", "Lowercase", "Metaspace", "NFC", "NFD", "NFKC", "NFKD", "Nmt",
        "Punctuation", "Strip", "StripAccents", "UnicodeScripts", "Whitespace", "WhitespaceSplit",
        "WordPiece",
    }
)  # fmt: skip
_MODELS = frozenset({"BPE", "Unigram", "WordLevel", "WordPiece"})
_PROCESSORS = frozenset({"BertProcessing", "ByteLevel", "RobertaProcessing", "TemplateProcessing"})
_LISTS = ("normalizers", "pretokenizers", "decoders", "processors")

# A pattern for one character: an escape, a class, or the character itself.
_ESCAPE = r"\\(?:[pP]\{\^?\w+\}|[dDsSwWnrtfv]|[^\w\s])"
_ATOM = rf"(?:{_ESCAPE}|\[\^?(?:{_ESCAPE}|[^\[\]\\&])+\]|[^\\()\[\]{{}}|?*+])"
# A group can't contain repeats or be repeated, because nested repeats may search for hours.
_GROUP = rf"\((?:\?(?:i:|:|!|=|<!|<=))?(?:{_ATOM}|\|)*\)"
_PART = re.compile(rf"(?P<atom>{_GROUP}(?![*+{{])|{_ATOM})(?P<repeat>[?*+]|\{{\d(?:,\d?)?\}})?|\|")


def read_tokenizer(file: Path) -> FastTokenizer:
    """Check every step of a tokenizer.json, then load it.

    Raises ValueError for a file that is too large or damaged, or has a forbidden step.
    """
    from tokenizers import Tokenizer

    value = read_json(file, MAX_TOKENIZER_BYTES)
    _check(value)
    with library_errors(f"{file.name} of {file.parent.name} is damaged"):
        # Serialize the checked value, so that the library reads exactly what we checked.
        tokenizer = Tokenizer.from_str(json.dumps(value))
    n_ids = n_ids_of(tokenizer)
    beyond = max(_added_ids(value), default=-1)
    if beyond >= n_ids:
        raise ValueError(
            f"{file.name} adds the token id {beyond} to every text, but its vocabulary only has "
            f"{n_ids} tokens."
        )
    return tokenizer


def n_ids_of(tokenizer: FastTokenizer) -> int:
    """One more than the largest id in the vocabulary, including added tokens; 0 if it's empty.

    Raises ValueError for a token longer than `MAX_PIECE_CHARACTERS`, because a model that keeps
    generating it would fill the memory.
    """
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    longest = max(map(len, vocabulary), default=0)
    if longest > MAX_PIECE_CHARACTERS:
        raise ValueError(
            f"A token has {longest:,} characters, but the limit is {MAX_PIECE_CHARACTERS:,}."
        )
    return max(vocabulary.values(), default=-1) + 1


@contextmanager
def library_errors(message: str) -> Iterator[None]:
    """Turn errors of the tokenizers library into ValueErrors that start with `message`.

    The library raises plain Exceptions. A bug in its Rust code raises a PanicException, which
    `except Exception` doesn't catch.
    """
    try:
        yield
    except ValueError:
        raise
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise ValueError(f"{message}: {error}") from error
        raise


def check_pattern(pattern: str) -> None:
    """Raise ValueError if a pattern's search may take more than quadratic time.

    This rejects repeats inside a group, backreferences, and branches with two repeats that cause
    backtracking: `a*a*b` tries every pair of positions, and `(a+)+b` every subset. A repeat at the
    end of a branch is allowed, because nothing after it can fail. Unknown syntax is rejected, too.
    """
    repeats = optional = place = 0
    at_end = False  # whether the branch so far ends with a repeat
    while place < len(pattern):
        part = _PART.match(pattern, place)
        if part is None or len(pattern) > MAX_PATTERN_CHARACTERS:
            raise ValueError(f"The pattern {pattern[:80]!r} could take too long.")
        place = part.end()
        repeat = part["repeat"] or ""
        if part[0] == "|":
            repeats = optional = 0
            at_end = False
            continue
        if at_end and repeat not in ("?", "*"):  # a part that can fail follows the repeat
            repeats += 1
            at_end = False
        if repeat in ("*", "+") or repeat.endswith(",}"):
            repeats += at_end  # of two adjacent repeats, only the last one is allowed
            at_end = True
        elif repeat:
            optional += 1
        if repeats > 1 or optional > MAX_OPTIONAL:
            raise ValueError(f"The pattern {pattern[:80]!r} could take too long.")


def _check(value: dict[str, Any]) -> None:
    for kind in ("normalizer", "pre_tokenizer", "decoder"):
        steps = list(_steps(value.get(kind)))
        if len(steps) > MAX_STEPS:
            raise ValueError(f"The {kind} has {len(steps)} steps, but the limit is {MAX_STEPS}.")
        for step in steps:
            _check_step(kind, step)
    _check_model(value.get("model"))
    for step in _steps(value.get("post_processor")):
        _check_processor(step)


def _steps(value: Any) -> Iterator[dict[str, Any]]:
    """The steps of a part of the file, with sequences flattened."""
    if value is None:
        return
    if not isinstance(value, dict):
        raise ValueError(f"A step of the tokenizer isn't a table: {str(value)[:80]!r}.")
    if value.get("type") != "Sequence":
        yield value
        return
    for name in _LISTS:
        inner = value.get(name, [])
        if not isinstance(inner, list):
            raise ValueError(f"{name} must be a list of steps.")
        for step in inner:
            yield from _steps(step)


def _check_step(kind: str, step: dict[str, Any]) -> None:
    name = step.get("type")
    if name == "Replace":
        _check_replace(step)
    elif name == "Split":
        _pattern_of(step)
    elif name == "Prepend":
        if len(_text(step, "prepend")) > 1:
            raise ValueError("The normalizer prepends more than one character to a text.")
    elif name == "Precompiled":
        _check_precompiled(step)
    elif not isinstance(name, str) or name not in _PLAIN:
        raise ValueError(f"The {kind} has the unsupported step {str(name)[:80]!r}.")


def _check_replace(step: dict[str, Any]) -> None:
    """Check that a replacement isn't longer than the text that it replaces."""
    longest = _pattern_of(step)
    if len(_text(step, "content")) > longest:
        raise ValueError(
            f"A step replaces a text of length {longest:,} with one of length "
            f"{len(step['content']):,}, so a text could become too large for the memory."
        )


def _pattern_of(step: dict[str, Any]) -> int:
    """Check the pattern of a step, and return the minimum number of characters it matches."""
    pattern = step.get("pattern")
    if not isinstance(pattern, dict) or len(pattern) != 1:
        raise ValueError(f"A step has the invalid pattern {str(pattern)[:80]!r}.")
    if "Regex" in pattern:
        check_pattern(_text(pattern, "Regex"))
        return 1
    return len(_text(pattern, "String"))


def _check_precompiled(step: dict[str, Any]) -> None:
    """Check a SentencePiece table: the size of a trie, the trie, then replacement texts."""
    try:
        table = base64.b64decode(_text(step, "precompiled_charsmap"), validate=True)
    except ValueError as error:
        raise ValueError("The table of replacement texts is damaged.") from error
    texts = table[4 + int.from_bytes(table[:4], "little") :]
    if max(map(len, texts.split(b"\0"))) > 64:  # U+FDFA becomes 33 bytes
        raise ValueError("The table of replacement texts has a text of more than 64 bytes.")


def _check_model(model: Any) -> None:
    if not isinstance(model, dict):
        raise ValueError("The tokenizer file is damaged: it has no model.")
    if model.get("type", "BPE") not in _MODELS:
        raise ValueError(f"The tokenizer's model has the unknown type {model.get('type')!r}.")
    if model.get("dropout"):
        raise ValueError("The tokenizer drops merges at random, so a text has no fixed tokens.")
    longest = model.get("max_input_chars_per_word", 100)
    if not isinstance(longest, int) or longest > MAX_WORD_CHARACTERS:
        raise ValueError(
            f"max_input_chars_per_word is {longest!r}, but must be at most {MAX_WORD_CHARACTERS:,}."
        )
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if len(str(model.get(name) or "")) > MAX_ADDED_TOKENS:
            raise ValueError(f"{name} has more than {MAX_ADDED_TOKENS} characters.")


def _check_processor(step: dict[str, Any]) -> None:
    """Check that a step adds only a few tokens around a text."""
    if step.get("type") not in _PROCESSORS:
        raise ValueError(f"The post-processor {str(step.get('type'))[:80]!r} isn't supported.")
    if step["type"] != "TemplateProcessing":
        return
    special = step.get("special_tokens", {})
    template = step.get("single", [])
    try:
        names = [part["SpecialToken"]["id"] for part in template if "SpecialToken" in part]
        n_added = sum(len(special[name]["ids"]) for name in names)
        n_texts = sum("Sequence" in part for part in template)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("The template for tokens around a text is damaged.") from error
    if n_added > MAX_ADDED_TOKENS or n_texts > 1:
        raise ValueError(
            f"The tokenizer adds {n_added:,} tokens around {n_texts:,} copies of a text, but the "
            f"limit is {MAX_ADDED_TOKENS} tokens around a single copy."
        )


def _added_ids(value: dict[str, Any]) -> Iterator[int]:
    """The ids of the tokens that the file adds to every text."""
    for step in _steps(value.get("post_processor")):
        if step["type"] == "TemplateProcessing":
            for token in step.get("special_tokens", {}).values():
                yield from token["ids"]
        for name in ("cls", "sep"):  # of BertProcessing and RobertaProcessing: a token and its id
            if name in step:
                yield step[name][1]


def _text(table: dict[str, Any], name: str) -> str:
    value = table.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name!r} of a step must be a text, not {str(value)[:80]!r}.")
    return value
