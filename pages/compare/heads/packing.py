"""The values of every head in a few bits each: what the mosaic draws and reads out.

A code is `round(levels * sqrt(value / largest of the head))`: small values get finer steps than
large ones. Codes go to the browser deflated. There are as many levels as the budget allows, 255 for
an ordinary sentence; `Packed.error` says what a value that is read back may be off by.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ui.canvas.component import pack as pack_arrays

MOST_LEVELS, FEWEST_LEVELS = 255, 15
BUDGET_BYTES = 1_100_000  # of the codes of 144 heads at 128 tokens, and of whatever is smaller
BUDGET_PER_CELL = BUDGET_BYTES / (144 * 128 * 128)  # of what is larger


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
        return f"{math.ceil(self.error / unit) * unit:.2g}"


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
    if values.ndim != 4 or values.shape[2] != values.shape[3]:
        raise ValueError(f"values must be (layers, H, T, T), got {values.shape}")
    if values.min(initial=0.0) < 0:
        raise ValueError(f"values must not be negative, the smallest is {values.min():g}")
    layers, heads, n_tokens, _ = values.shape
    cells = values.reshape(layers * heads, -1)
    if causal:
        cells = cells[:, np.tril(np.ones((n_tokens, n_tokens), bool)).ravel()]
    largest = cells.max(axis=1)
    shares = np.sqrt(cells / np.maximum(largest, np.finfo(np.float32).tiny)[:, None])
    levels, codes = _fitting(shares)
    error = float(largest.max()) * (levels - 0.25) / levels**2
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
        "levels": levels,
        "largest": [float(value) for value in largest],
        "digest": hashlib.blake2b(codes, digest_size=6).hexdigest(),
    }
    return Packed(pack_arrays(header, codes), (layers, heads, n_tokens, n_tokens), levels, error)


def _fitting(shares: np.ndarray) -> tuple[int, bytes]:
    """The largest number of levels whose codes fit the budget, and these codes, deflated."""
    budget = max(BUDGET_BYTES, shares.size * BUDGET_PER_CELL)
    levels = MOST_LEVELS
    while True:
        codes = np.rint(shares * levels).astype(np.uint8)
        n_bytes = _entropy_bits(codes) / 8
        if n_bytes <= budget or levels == FEWEST_LEVELS:
            return levels, _deflated(codes)
        # a halving of the levels saves about a bit a code
        excess_bits = 8 * (n_bytes - budget) / codes.size
        levels = max(FEWEST_LEVELS, min(levels - 1, int(levels * 2 ** (-1.05 * excess_bits))))


def _entropy_bits(codes: np.ndarray) -> float:
    """Bits that Huffman coding needs at least."""
    counts = np.bincount(codes.ravel())
    shares = counts[counts > 0] / codes.size
    return float(-(shares * np.log2(shares)).sum() * codes.size)


def _deflated(codes: np.ndarray) -> bytes:
    # Huffman coding alone: attention has few repeats, and looking for them takes twice the time
    # and, on noise, more bytes
    deflate = zlib.compressobj(1, zlib.DEFLATED, 15, 9, zlib.Z_HUFFMAN_ONLY)
    return deflate.compress(codes.tobytes()) + deflate.flush()
