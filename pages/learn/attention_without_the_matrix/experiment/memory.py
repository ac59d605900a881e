"""Memory traffic of one head, by formula.

A GPU has a large memory (tens of gigabytes) and a small, fast one next to its arithmetic units.
Every matrix that one step passes to the next is written to the large memory and read back; access
to the fast memory is free. This follows Dao et al. (2022, https://arxiv.org/abs/2205.14135,
section 3), but with all constant factors.
Dimension letters: T queries, S keys (here T = S), D head size.
"""

from __future__ import annotations

from dataclasses import dataclass

from attention_core.checks import require_int

WHOLE, TILES = "whole matrix", "tiles"
READ, WRITTEN = "read", "written"


@dataclass(frozen=True)
class Traffic:
    """Numbers (not bytes) that one head reads and writes.

    transfers: (step, tensor, READ or WRITTEN, count). n_saved: numbers kept for the backward pass
    in addition to q, k, v and the output. n_operations: multiplications and additions in both
    products.
    """

    transfers: tuple[tuple[str, str, str, int], ...]
    n_saved: int
    n_operations: int

    @property
    def n_transferred(self) -> int:
        """The total count of numbers read or written."""
        return sum(count for *_, count in self.transfers)


def whole_matrix(n_tokens: int, head_size: int) -> Traffic:
    """Three steps that pass (T, T) matrices through the large memory.

    A causal mask saves nothing because the forbidden half of the matrix is computed as well.
    Raises: ValueError for sizes below 1.
    """
    require_int("n_tokens", n_tokens)
    require_int("head_size", head_size)
    vectors, matrix = n_tokens * head_size, n_tokens**2
    change = (
        ("scores = q·kᵀ", "q", READ, vectors),
        ("scores = q·kᵀ", "k", READ, vectors),
        ("scores = q·kᵀ", "scores", WRITTEN, matrix),
        ("softmax", "scores", READ, matrix),
        ("softmax", "weights", WRITTEN, matrix),
        ("weights·v", "weights", READ, matrix),
        ("weights·v", "v", READ, vectors),
        ("weights·v", "output", WRITTEN, vectors),
    )
    return Traffic(change, matrix, 4 * matrix * head_size)


def in_tiles(n_tokens: int, head_size: int, tile: tuple[int, int], *, causal: bool) -> Traffic:
    """One step that loads a tile of queries and streams keys and values past it.

    tile: queries and keys per tile. With a causal mask, fully masked tiles are skipped.
    Raises: ValueError for sizes below 1.
    """
    require_int("n_tokens", n_tokens)
    require_int("head_size", head_size)
    require_int("queries of a tile", tile[0])
    require_int("keys of a tile", tile[1])
    passing = n_cells = 0
    for start in range(0, n_tokens, tile[0]):
        stop = min(start + tile[0], n_tokens)
        # the last query of the tile sees `stop` keys, rounded up to whole tiles
        visible = (
            min(-(-stop // tile[1]) * tile[1], n_tokens) if causal else n_tokens
        )  # [keys seen]
        passing += visible  # [total keys]
        n_cells += (stop - start) * visible
    step, vectors = "one step, tile by tile", n_tokens * head_size
    # [transfers]
    change = (
        (step, "q", READ, vectors),
        (step, "k", READ, passing * head_size),
        (step, "v", READ, passing * head_size),
        (step, "output", WRITTEN, vectors),
        (step, "m and l", WRITTEN, 2 * n_tokens),
    )
    return Traffic(change, 2 * n_tokens, 4 * n_cells * head_size)


def fast_numbers(head_size: int, tile: tuple[int, int]) -> int:
    """Numbers per tile in fast memory: q, k, v, scores, output, m and l."""
    n_queries, n_keys = tile
    return 2 * n_queries * head_size + 2 * n_keys * head_size + n_queries * n_keys + 2 * n_queries
