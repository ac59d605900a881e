"""Pack the values of all heads for the mosaic, as codes of a few bits plus a header."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ui.canvas.codes import encode
from ui.canvas.component import pack as pack_arrays
from ui.text.formatting import format_number


@dataclass(frozen=True)
class PackedMosaic:
    """The data for the browser and its accuracy.

    shape: (layers, H, T, S). error: the largest difference between a value and its decoded code, in
    the values' unit.
    """

    data: bytes
    shape: tuple[int, int, int, int]
    levels: int
    error: float

    @property
    def stated_error(self) -> str:
        """The error with two digits, rounded up, for display."""
        if self.error <= 0:
            return "0"
        unit = 10.0 ** (math.floor(math.log10(self.error)) - 1)
        return format_number(math.ceil(self.error / unit) * unit, ".2g")


def pack(
    values: np.ndarray,
    labels: Sequence[str],
    *,
    name: str,
    title: str,
    causal: bool,
    value_name: str = "weight",
) -> PackedMosaic:
    """Pack the header length (4 bytes, little endian), a JSON header, and the deflated codes.

    Codes are bytes, ordered by head and row; for causal models, only visible cells are included.
    name: the key of the mosaic that draws them. title: the title above it.
    Raises: ValueError if the values aren't (layers, H, T, T) or if one is negative.
    """
    codes = encode(values, causal=causal)
    layers, heads, n_tokens, _ = values.shape
    header = {
        "name": name,
        "layers": layers,
        "heads": heads,
        "labels": list(labels),
        "title": title,
        "says": "Each tile is a head, and the numbers on the left are layers. Within a tile, rows "
        "are query tokens and columns are key tokens.",
        "causal": causal,
        "valueName": value_name,
        "levels": codes.levels,
        "largest": list(codes.largest),
        "digest": hashlib.blake2b(codes.deflated, digest_size=6).hexdigest(),
    }
    shape = (layers, heads, n_tokens, n_tokens)
    return PackedMosaic(pack_arrays(header, codes.deflated), shape, codes.levels, codes.error)
