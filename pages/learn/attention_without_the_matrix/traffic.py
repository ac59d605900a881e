"""What one head moves through the large memory, with the whole matrix and in tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from ui.text.number_text import written

if TYPE_CHECKING:
    from pages.learn.attention_without_the_matrix.experiment.memory import Traffic

LENGTHS = tuple(2**power for power in range(7, 18))
TILE_SIZES = (16, 32, 64, 128, 256)
BYTES = {"16-bit numbers": 2, "float32": 4}
# An NVIDIA A100 with 40 GB, by its data sheet: bytes a second of its large memory, fast memory of
# one of its 108 processors, and operations a second of its matrix units with numbers of 2 bytes and
# of 4 (TF32).
BYTES_A_SECOND, FAST_BYTES = 1.555e12, 192 * 1024
OPERATIONS_A_SECOND = {2: 312e12, 4: 156e12}


@dataclass(frozen=True)
class TileSetup:
    """One head: tokens, numbers of a vector, bytes of a number, queries and keys of a tile."""

    n_tokens: int
    head_size: int
    n_bytes: int
    tile: tuple[int, int]
    causal: bool

    @property
    def both(self) -> dict[str, Traffic]:
        """What is moved with the whole matrix and in tiles, by their names."""
        return _both(self, self.n_tokens)

    @property
    def fast_bytes(self) -> int:
        """Bytes of everything that one tile needs at once."""
        from pages.learn.attention_without_the_matrix.experiment.memory import (
            fast_numbers,
        )

        return self.n_bytes * fast_numbers(self.head_size, self.tile)


def _both(setting: TileSetup, n_tokens: int) -> dict[str, Traffic]:
    from pages.learn.attention_without_the_matrix.experiment import memory

    return {
        memory.WHOLE: memory.whole_matrix(n_tokens, setting.head_size),
        memory.TILES: memory.in_tiles(
            n_tokens, setting.head_size, setting.tile, causal=setting.causal
        ),
    }


def curves(setting: TileSetup) -> pd.DataFrame:
    """Bytes that are moved for every length: `how`, `tokens`, `bytes`."""
    return pd.DataFrame(
        [
            {"how": how, "tokens": length, "bytes": setting.n_bytes * moved.n_moved}
            for length in LENGTHS
            for how, moved in _both(setting, length).items()
        ]
    )


def summary(setting: TileSetup) -> pd.DataFrame:
    """What is moved and kept both ways, and how many operations there are for a byte moved."""
    rows = []
    for how, traffic in setting.both.items():
        n_bytes = setting.n_bytes * traffic.n_moved
        rows.append(
            {
                "one head": how,
                "bytes moved": size(n_bytes),
                "kept": size(setting.n_bytes * traffic.n_kept),
                "operations a byte": written(traffic.n_operations / n_bytes, ".3g"),
            }
        )
    return pd.DataFrame(rows)


def pieces(setting: TileSetup) -> pd.DataFrame:
    """Every tensor that is read or written, one row each."""
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
            for how, traffic in setting.both.items()
            for step, tensor, way, count in traffic.moved
        ]
    )


def notice(setting: TileSetup) -> str:
    """What to notice, computed."""
    whole, tiled = setting.both.values()
    possible = OPERATIONS_A_SECOND[setting.n_bytes] / BYTES_A_SECOND
    rounded = ", which take float32 as TF32, rounded to 10 bits," if setting.n_bytes == 4 else ""
    fits = "fits into" if setting.fast_bytes <= FAST_BYTES else "does not fit into"
    fewer = whole.n_moved / tiled.n_moved
    moved = f"{fewer:,.1f} times fewer" if fewer >= 1 else f"{1 / fewer:,.1f} times as many"
    return (
        f"Tiles move {moved} bytes. In the time in which an NVIDIA A100 moves a byte, its matrix "
        f"units{rounded} can do {possible:.0f} operations. "
        f"The whole matrix gives it {_each(setting, whole):.0f} a byte, so it "
        f"{_is(setting, whole)}; tiles give it "
        f"{_each(setting, tiled):.0f}, so it {_is(setting, tiled)}{_still(setting)}. The more "
        "queries a tile has, the more operations a byte. A tile needs "
        f"{size(setting.fast_bytes)} at once, which {fits} the {size(FAST_BYTES)} of fast memory "
        "of each of its processors."
    )


def _each(setting: TileSetup, traffic: Traffic) -> float:
    """Operations for each byte that is moved."""
    return traffic.n_operations / (setting.n_bytes * traffic.n_moved)


def _is(setting: TileSetup, traffic: Traffic) -> str:
    possible = OPERATIONS_A_SECOND[setting.n_bytes] / BYTES_A_SECOND
    return "waits for memory" if _each(setting, traffic) < possible else "is busy"


def _still(setting: TileSetup) -> str:
    """What is to be added where both ways wait: it is not the same wait."""
    whole, tiled = (_is(setting, traffic) for traffic in setting.both.values())
    if not whole == tiled == "waits for memory":
        return ""
    moved = [traffic.n_moved for traffic in setting.both.values()]
    return " too, for a shorter time" if moved[1] < moved[0] else " too"


def size(n_bytes: float) -> str:
    """Bytes as people say them, in powers of 1000: "268 MB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{written(n_bytes, '.3g')} {unit}"
        n_bytes /= 1000
    return f"{written(n_bytes, '.3g')} TB"
