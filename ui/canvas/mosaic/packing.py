"""The values of every head as the mosaic gets them: codes of a few bits, and what they are of."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ui.canvas.codes import coded
from ui.canvas.component import pack as pack_arrays
from ui.text.number_text import written


@dataclass(frozen=True)
class Packed:
    """What the browser gets, and how exact it is.

    `error` is the largest difference between a value and what is read back, in the values' unit.
    `shape` is (layers, H, T, S).
    """

    data: bytes
    shape: tuple[int, int, int, int]
    levels: int
    error: float

    @property
    def stated_error(self) -> str:
        """The error in two digits, rounded up: what a page may promise."""
        if self.error <= 0:
            return "0"
        unit = 10.0 ** (math.floor(math.log10(self.error)) - 1)
        return written(math.ceil(self.error / unit) * unit, ".2g")


def pack(
    values: np.ndarray,
    labels: Sequence[str],
    *,
    name: str,
    title: str,
    causal: bool,
    value_name: str = "weight",
) -> Packed:
    """Header length (4 bytes, little endian), JSON header, then the deflated codes.

    Codes are bytes, head by head and row by row; of a causal model only what a query may see.
    `name` is the key of the mosaic that will draw them, `title` what stands above it.
    Raises: ValueError for values that are not (layers, H, T, T) or negative.
    """
    codes = coded(values, causal=causal)
    layers, heads, n_tokens, _ = values.shape
    header = {
        "name": name,
        "layers": layers,
        "heads": heads,
        "labels": list(labels),
        "title": title,
        "says": "A tile is a head, its layer at the left. In it, a row is the token that looks, a "
        "column the token looked at.",
        "causal": causal,
        "valueName": value_name,
        "levels": codes.levels,
        "largest": list(codes.largest),
        "digest": hashlib.blake2b(codes.deflated, digest_size=6).hexdigest(),
    }
    shape = (layers, heads, n_tokens, n_tokens)
    return Packed(pack_arrays(header, codes.deflated), shape, codes.levels, codes.error)
