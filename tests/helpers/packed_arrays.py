"""Unpack the header and float32 arrays of the picture of one pass, like the browser does."""

import json
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]


def unpack(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return the header, and the arrays by name."""
    length = int.from_bytes(data[:4], "little")
    header, body = json.loads(data[4 : 4 + length]), data[4 + length :]
    arrays, start = {}, 0
    for name, shape in header["arrays"]:
        end = start + 4 * int(np.prod(shape))
        arrays[name] = np.frombuffer(body[start:end], "<f4").reshape(shape)
        start = end
    return header, arrays
