"""Memory traffic of one head, with the whole matrix and with tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from ui.text.formatting import format_number

if TYPE_CHECKING:
    from pages.learn.attention_without_the_matrix.experiment.memory import Traffic

LENGTHS = tuple(2**power for power in range(7, 18))
TILE_SIZES = (16, 32, 64, 128, 256)
BYTES = {"16-bit numbers": 2, "float32": 4}
# NVIDIA A100 with 40 GB, from its data sheet: memory bandwidth, shared memory of one of its 108
# multiprocessors, and tensor core operations per second by bytes per number (4 bytes: TF32).
BYTES_A_SECOND, FAST_BYTES = 1.555e12, 192 * 1024
OPERATIONS_A_SECOND = {2: 312e12, 4: 156e12}


@dataclass(frozen=True)
class TileSetup:
    """One head: tokens, head size, bytes per number, tile (queries, keys), mask."""

    n_tokens: int
    head_size: int
    n_bytes: int
    tile: tuple[int, int]
    causal: bool

    @property
    def by_method(self) -> dict[str, Traffic]:
        """The traffic of both methods by name."""
        return _traffic(self, self.n_tokens)

    @property
    def fast_bytes(self) -> int:
        """Bytes of fast memory that one tile needs."""
        from pages.learn.attention_without_the_matrix.experiment.memory import (
            fast_numbers,
        )

        return self.n_bytes * fast_numbers(self.head_size, self.tile)


def _traffic(setting: TileSetup, n_tokens: int) -> dict[str, Traffic]:
    from pages.learn.attention_without_the_matrix.experiment import memory

    return {
        memory.WHOLE: memory.whole_matrix(n_tokens, setting.head_size),
        memory.TILES: memory.in_tiles(
            n_tokens, setting.head_size, setting.tile, causal=setting.causal
        ),
    }


def curves(setting: TileSetup) -> pd.DataFrame:
    """Bytes moved for each text length: `how`, `tokens`, `bytes`."""
    return pd.DataFrame(
        [
            {"how": how, "tokens": length, "bytes": setting.n_bytes * moved.n_transferred}
            for length in LENGTHS
            for how, moved in _traffic(setting, length).items()
        ]
    )


def summary(setting: TileSetup) -> pd.DataFrame:
    """Bytes moved, bytes kept and operations per byte for both methods."""
    rows = []
    for how, traffic in setting.by_method.items():
        n_bytes = setting.n_bytes * traffic.n_transferred
        rows.append(
            {
                "one head": how,
                "bytes moved": size(n_bytes),
                "kept": size(setting.n_bytes * traffic.n_saved),
                "operations per byte": format_number(traffic.n_operations / n_bytes, ".3g"),
            }
        )
    return pd.DataFrame(rows)


def pieces(setting: TileSetup) -> pd.DataFrame:
    """One row for every tensor that is read or written."""
    return pd.DataFrame(
        [
            {
                "how": how,
                "step": step,
                "tensor": tensor,
                "moved": way,
                "numbers": count,
                "bytes": size(setting.n_bytes * count),
            }
            for how, traffic in setting.by_method.items()
            for step, tensor, way, count in traffic.transfers
        ]
    )


def notice(setting: TileSetup) -> str:
    """Compare the operations per byte with what an A100 could do."""
    whole, tiled = setting.by_method.values()
    possible = OPERATIONS_A_SECOND[setting.n_bytes] / BYTES_A_SECOND
    rounded = " (which round float32 to TF32)" if setting.n_bytes == 4 else ""
    fits = "fits into" if setting.fast_bytes <= FAST_BYTES else "doesn't fit into"
    fewer = whole.n_transferred / tiled.n_transferred
    change = f"{fewer:,.1f} times fewer" if fewer >= 1 else f"{1 / fewer:,.1f} times as many"
    return (
        f"Tiles move {change} bytes. While an NVIDIA A100 moves one byte, its tensor cores"
        f"{rounded} can do {possible:.0f} operations. The whole matrix gives them "
        f"{_intensity(setting, whole):.0f} operations per byte, so the chip "
        f"{_state(setting, whole)}. "
        f"Tiles give them {_intensity(setting, tiled):.0f}, so it "
        f"{_state(setting, tiled)}{_bound_note(setting)}. More queries per tile mean more "
        "operations "
        f"per byte. One tile needs {size(setting.fast_bytes)}, which {fits} the {size(FAST_BYTES)} "
        "of fast memory in each multiprocessor."
    )


def _intensity(setting: TileSetup, traffic: Traffic) -> float:
    """Operations per byte moved."""
    return traffic.n_operations / (setting.n_bytes * traffic.n_transferred)


def _state(setting: TileSetup, traffic: Traffic) -> str:
    possible = OPERATIONS_A_SECOND[setting.n_bytes] / BYTES_A_SECOND
    return "waits for memory" if _intensity(setting, traffic) < possible else "stays busy"


def _bound_note(setting: TileSetup) -> str:
    """Text to append if the chip waits for memory with both methods."""
    whole, tiled = (_state(setting, traffic) for traffic in setting.by_method.values())
    if not whole == tiled == "waits for memory":
        return ""
    change = [traffic.n_transferred for traffic in setting.by_method.values()]
    return " too, but not for as long" if change[1] < change[0] else " too"


def size(n_bytes: float) -> str:
    """Format a number of bytes in powers of 1000, for example "268 MB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{format_number(n_bytes, '.3g')} {unit}"
        n_bytes /= 1000
    return f"{format_number(n_bytes, '.3g')} TB"
