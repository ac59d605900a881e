"""The values of every head in a few bits each, as pictures of all heads carry them.

A code is `round(levels * sqrt(value / largest of the head))`: small values get finer steps than
large ones. There are as many levels as the budget allows, 255 for an ordinary sentence;
`Codes.error` says what a value that is read back may be off by.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

MOST_LEVELS, FEWEST_LEVELS = 255, 15
BUDGET_BYTES = 1_100_000  # of the codes of 144 heads at 128 tokens, and of whatever is smaller
BUDGET_PER_CELL = BUDGET_BYTES / (144 * 128 * 128)  # of what is larger


@dataclass(frozen=True)
class Codes:
    """The deflated codes, head by head and row by row; of a causal model what a query may see.

    largest: of each head, layer by layer. error: the largest difference between a value and what is
    read back, in the values' unit.
    """

    deflated: bytes
    levels: int
    largest: tuple[float, ...]
    error: float


def coded(values: np.ndarray, *, causal: bool) -> Codes:
    """The values of all heads, (layers, H, T, T) and not negative, as codes.

    Raises: ValueError for values of another shape, or negative ones.
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
    levels, deflated = _fitting(shares)
    error = float(largest.max()) * (levels - 0.25) / levels**2
    return Codes(deflated, levels, tuple(map(float, largest)), error)


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
