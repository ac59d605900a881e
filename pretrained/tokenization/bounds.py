"""What a tokenizer file may ask for: steps that cost little, whatever text they are given.

A tokenizer.json is a small program: it replaces characters by longer texts, searches with patterns,
adds tokens. The library runs it without any bound, so that a file of a stranger can ask for more
memory than there is, which ends the process, or search for hours. Here every step of the file is
looked at before the library gets it, and a file with an unknown or a boundless step is refused.
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
MAX_STEPS = 8  # of one kind: no published file has more than four
MAX_PIECE_CHARACTERS = 2_000  # of a token: runs of spaces are the longest of published ones
MAX_WORD_CHARACTERS = 1_000  # that WordPiece looks at: its time grows with their square
MAX_ADDED_TOKENS = 16  # around a text
MAX_PATTERN_CHARACTERS = 1_000
MAX_OPTIONAL = 4  # pieces in one branch of a pattern: each of them doubles what is tried

# Steps after which a text is about as long as before, or at most a few times as long.
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

# One character of a text, as a pattern spells it: an escape, a class, or the character itself.
_ESCAPE = r"\\(?:[pP]\{\^?\w+\}|[dDsSwWnrtfv]|[^\w\s])"
_ATOM = rf"(?:{_ESCAPE}|\[\^?(?:{_ESCAPE}|[^\[\]\\&])+\]|[^\\()\[\]{{}}|?*+])"
# A group holds no repeats, and is not repeated: nested repeats are what searches for hours.
_GROUP = rf"\((?:\?(?:i:|:|!|=|<!|<=))?(?:{_ATOM}|\|)*\)"
_PART = re.compile(rf"(?P<atom>{_GROUP}(?![*+{{])|{_ATOM})(?P<repeat>[?*+]|\{{\d(?:,\d?)?\}})?|\|")


def read_tokenizer(file: Path) -> FastTokenizer:
    """The tokenizer of a tokenizer.json, once every step of it is known to be bounded.

    Raises ValueError for a file that is too large or damaged, and for a step that is refused.
    """
    from tokenizers import Tokenizer

    value = read_json(file, MAX_TOKENIZER_BYTES)
    _check(value)
    with library_errors(f"{file.name} of {file.parent.name} is damaged"):
        # Written anew: what was looked at is what the library reads, even if a name came twice.
        tokenizer = Tokenizer.from_str(json.dumps(value))
    n_ids = n_ids_of(tokenizer)
    beyond = max(_added_ids(value), default=-1)
    if beyond >= n_ids:
        raise ValueError(
            f"{file.name} adds token {beyond} to every text, which is outside its vocabulary of "
            f"{n_ids} tokens."
        )
    return tokenizer


def n_ids_of(tokenizer: FastTokenizer) -> int:
    """One more than the largest id of the vocabulary, added tokens included; 0 for an empty one.

    Raises ValueError for a token that is longer than any of a published vocabulary: a model that
    writes it again and again would fill the memory.
    """
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    longest = max(map(len, vocabulary), default=0)
    if longest > MAX_PIECE_CHARACTERS:
        raise ValueError(
            f"A token has {longest:,} characters; at most {MAX_PIECE_CHARACTERS:,} are taken."
        )
    return max(vocabulary.values(), default=-1) + 1


@contextmanager
def library_errors(says: str) -> Iterator[None]:
    """What the tokenizers library cannot go on with is a ValueError that begins with `says`.

    The library raises bare Exceptions. A defect in its Rust code arrives as a PanicException, which
    no `except Exception` catches.
    """
    try:
        yield
    except ValueError:
        raise
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise ValueError(f"{says}: {error}") from error
        raise


def check_pattern(pattern: str) -> None:
    """Raise ValueError for a pattern whose search can take longer than the square of a text.

    Refused are repeats inside a group that may be repeated, references back, and a branch with two
    repeats of which the first is tried anew for each length of the second: with `a*a*b` there are
    as many ways as pairs of places, with `(a+)+b` as many as subsets. A repeat at the end of its
    branch is free, for nothing behind it can fail. Whatever is no plain pattern is refused too.
    """
    repeats = optional = place = 0
    at_end = False  # the last repeat is the end of its branch so far
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
        if at_end and repeat not in ("?", "*"):  # something that can fail stands behind it
            repeats += 1
            at_end = False
        if repeat in ("*", "+") or repeat.endswith(",}"):
            repeats += at_end  # of two in a row only the last is free
            at_end = True
        elif repeat:
            optional += 1
        if repeats > 1 or optional > MAX_OPTIONAL:
            raise ValueError(f"The pattern {pattern[:80]!r} could take too long.")


def _check(value: dict[str, Any]) -> None:
    for kind in ("normalizer", "pre_tokenizer", "decoder"):
        steps = list(_steps(value.get(kind)))
        if len(steps) > MAX_STEPS:
            raise ValueError(f"The {kind} has {len(steps)} steps; at most {MAX_STEPS} are taken.")
        for step in steps:
            _check_step(kind, step)
    _check_model(value.get("model"))
    for step in _steps(value.get("post_processor")):
        _check_processor(step)


def _steps(value: Any) -> Iterator[dict[str, Any]]:
    """The steps of a part of the file, without the sequences that hold them."""
    if value is None:
        return
    if not isinstance(value, dict):
        raise ValueError(f"A step of the tokenizer is no table: {str(value)[:80]!r}.")
    if value.get("type") != "Sequence":
        yield value
        return
    for name in _LISTS:
        inner = value.get(name, [])
        if not isinstance(inner, list):
            raise ValueError(f"{name} is no list of steps.")
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
            raise ValueError("The normalizer puts more than one character before a text.")
    elif name == "Precompiled":
        _check_precompiled(step)
    elif not isinstance(name, str) or name not in _PLAIN:
        raise ValueError(f"The {kind} has a step {str(name)[:80]!r}, which is not taken here.")


def _check_replace(step: dict[str, Any]) -> None:
    """A replacement may not be longer than what it replaces."""
    longest = _pattern_of(step)
    if len(_text(step, "content")) > longest:
        raise ValueError(
            f"{len(step['content']):,} characters replace {longest:,} of a text, which could make "
            "it longer than the memory of this machine."
        )


def _pattern_of(step: dict[str, Any]) -> int:
    """The number of characters that a step looks for, at least; its pattern is checked."""
    pattern = step.get("pattern")
    if not isinstance(pattern, dict) or len(pattern) != 1:
        raise ValueError(f"A step looks for {str(pattern)[:80]!r}, which is no pattern.")
    if "Regex" in pattern:
        check_pattern(_text(pattern, "Regex"))
        return 1
    return len(_text(pattern, "String"))


def _check_precompiled(step: dict[str, Any]) -> None:
    """The table of SentencePiece: a trie behind its size, then the texts that it puts in."""
    try:
        table = base64.b64decode(_text(step, "precompiled_charsmap"), validate=True)
    except ValueError as error:
        raise ValueError("The table of replaced characters is damaged.") from error
    texts = table[4 + int.from_bytes(table[:4], "little") :]
    if max(map(len, texts.split(b"\0"))) > 64:  # U+FDFA becomes 33 bytes
        raise ValueError("The table of replaced characters has texts of more than 64 bytes.")


def _check_model(model: Any) -> None:
    if not isinstance(model, dict):
        raise ValueError("The tokenizer file is damaged: it has no model.")
    if model.get("type", "BPE") not in _MODELS:
        raise ValueError(f"The tokenizer's model is of the unknown type {model.get('type')!r}.")
    if model.get("dropout"):
        raise ValueError("The tokenizer drops merges at random: no text has tokens of its own.")
    longest = model.get("max_input_chars_per_word", 100)
    if not isinstance(longest, int) or longest > MAX_WORD_CHARACTERS:
        raise ValueError(f"Words of {longest!r} characters; at most {MAX_WORD_CHARACTERS:,}.")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if len(str(model.get(name) or "")) > MAX_ADDED_TOKENS:
            raise ValueError(f"{name} has more than {MAX_ADDED_TOKENS} characters.")


def _check_processor(step: dict[str, Any]) -> None:
    """The tokens around a text are few, whatever the file says how often they come."""
    if step.get("type") not in _PROCESSORS:
        raise ValueError(f"Tokens are added by {str(step.get('type'))[:80]!r}, which is unknown.")
    if step["type"] != "TemplateProcessing":
        return
    special = step.get("special_tokens", {})
    template = step.get("single", [])
    try:
        names = [part["SpecialToken"]["id"] for part in template if "SpecialToken" in part]
        n_added = sum(len(special[name]["ids"]) for name in names)
        n_texts = sum("Sequence" in part for part in template)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("The tokens around a text are no template.") from error
    if n_added > MAX_ADDED_TOKENS or n_texts > 1:
        raise ValueError(
            f"{n_added:,} tokens around {n_texts:,} copies of a text; at most {MAX_ADDED_TOKENS} "
            "around one are taken."
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
        raise ValueError(f"{name!r} of a step is {str(value)[:80]!r}, which is no text.")
    return value
