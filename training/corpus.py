"""The corpus: 100 English novels in the public domain, some of them held out.

Their text isn't part of this repository. `read_books` takes the archive of the corpus, with one
UTF-8 file per book, or a folder with these files: `100_english_novels.tar.xz` from
https://github.com/computationalstylistics/100_english_novels.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

# These books are never used for training: ten books by ten authors who also wrote training books.
HELD_OUT = (
    "Bennet_Babylon_1902",
    "Chesterton_Thursday_1908",
    "Doyle_Lost_1912",
    "Eliot_Adam_1859",
    "Forster_View_1908",
    "Hardy_Tess_1891",
    "Kipling_Captains_1896",
    "Stevenson_Treasure_1883",
    "Trollope_Warden_1855",
    "Woolf_Lighthouse_1927",
)
# A shorter line ends a paragraph, because the books are wrapped at about 70 characters.
_WRAPPED_FROM = 50


@dataclass(frozen=True)
class Corpus:
    """Token ids of all books, concatenated, with an end-of-text token after each.

    `train` and `held_out` are uint16 arrays and have no books in common.
    """

    train: NDArray[np.uint16]
    held_out: NDArray[np.uint16]


def read_books(path: Path) -> dict[str, str]:
    """The text of each book by name, without line breaks inside paragraphs.

    Raises: ValueError if the archive or folder has no books.
    """
    books = {}
    if path.is_dir():
        for file in path.rglob("*.txt"):
            books[file.stem] = unwrap(file.read_bytes().decode("utf-8-sig"))
    else:
        with tarfile.open(path) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.name.endswith(".txt") else None
                if content is not None:
                    books[Path(member.name).stem] = unwrap(content.read().decode("utf-8-sig"))
    if not books:
        raise ValueError(f"{path} has no books: it needs files whose names end in .txt")
    return dict(sorted(books.items()))


def unwrap(text: str) -> str:
    """The text with line breaks only at the ends of paragraphs."""
    parts: list[str] = []
    for line in (line.strip() for line in text.splitlines()):
        if line:
            parts.append(line + (" " if len(line) >= _WRAPPED_FROM else "\n"))
        elif parts and parts[-1].endswith(" "):
            parts[-1] = parts[-1][:-1] + "\n"
    return "".join(parts)


def split(books: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split books into training books and held-out books."""
    held_out = {name: text for name, text in books.items() if name in HELD_OUT}
    return {name: text for name, text in books.items() if name not in held_out}, held_out


def encode(books: Mapping[str, str], tokenizer: Tokenizer, end: int) -> NDArray[np.uint16]:
    """Concatenated ids of the books, with `end` after each."""
    encodings = tokenizer.encode_batch(list(books.values()), add_special_tokens=False)
    ids = [np.array([*encoding.ids, end], dtype=np.uint16) for encoding in encodings]
    return np.concatenate(ids)


def load_or_encode(path: Path, tokenizer: Tokenizer, end: int, folder: Path) -> Corpus:
    """The books at `path` as ids, cached in `folder`."""
    which = hashlib.sha256(tokenizer.to_str().encode()).hexdigest()[:16]
    files = [folder / f"{part}-{which}.npy" for part in ("train", "held_out")]
    if not all(file.is_file() for file in files):
        folder.mkdir(parents=True, exist_ok=True)
        for file, books in zip(files, split(read_books(path)), strict=True):
            np.save(file, encode(books, tokenizer, end))
    return Corpus(*(np.load(file, mmap_mode="r") for file in files))
