"""Quantize the values of all heads to a few bits each, for pictures of all heads.

A code is `round(levels * sqrt(value / largest of the head))`, so small values get finer steps than
large ones. The number of levels depends on the size budget; ordinary sentences get 255.
`Codes.error` is the largest error of a decoded value.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

MAX_LEVELS, MIN_LEVELS = 255, 15
BUDGET_BYTES = 1_100_000  # for up to 144 heads at 128 tokens
BUDGET_PER_CELL = BUDGET_BYTES / (144 * 128 * 128)  # for anything larger


@dataclass(frozen=True)
class Codes:
    """The deflated codes, ordered by head and row; for causal models, only the visible cells.

    largest: the largest value of each head, ordered by layer. error: the largest difference between
    a value and its decoded code, in the values' unit.
    """

    deflated: bytes
    levels: int
    largest: tuple[float, ...]
    error: float


def encode(values: np.ndarray, *, causal: bool) -> Codes:
    """Encode the values of all heads, shape (layers, H, T, T), which must be nonnegative.

    Raises: ValueError if the shape is different or a value is negative.
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
    levels, deflated = _fit_budget(shares)
    error = float(largest.max()) * (levels - 0.25) / levels**2
    return Codes(deflated, levels, tuple(map(float, largest)), error)


def _fit_budget(shares: np.ndarray) -> tuple[int, bytes]:
    """The largest number of levels whose codes fit into the budget, and the deflated codes."""
    budget = max(BUDGET_BYTES, shares.size * BUDGET_PER_CELL)
    levels = MAX_LEVELS
    while True:
        codes = np.rint(shares * levels).astype(np.uint8)
        n_bytes = _entropy_bits(codes) / 8
        if n_bytes <= budget or levels == MIN_LEVELS:
            return levels, _deflate(codes)
        # halving the levels saves about one bit per code
        excess_bits = 8 * (n_bytes - budget) / codes.size
        levels = max(MIN_LEVELS, min(levels - 1, int(levels * 2 ** (-1.05 * excess_bits))))


def _entropy_bits(codes: np.ndarray) -> float:
    """The minimum number of bits that Huffman coding needs."""
    counts = np.bincount(codes.ravel())
    shares = counts[counts > 0] / codes.size
    return float(-(shares * np.log2(shares)).sum() * codes.size)


def _deflate(codes: np.ndarray) -> bytes:
    # only Huffman coding: attention has few repeats, and searching for them takes twice as long
    # and needs more bytes on noisy data
    deflate = zlib.compressobj(1, zlib.DEFLATED, 15, 9, zlib.Z_HUFFMAN_ONLY)
    return deflate.compress(codes.tobytes()) + deflate.flush()
