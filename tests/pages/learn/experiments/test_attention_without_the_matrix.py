"""Compare tiled attention to PyTorch's attention, `attend` and autograd."""

import math
import random

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

from attention_core import attend
from attention_core.masks import causal_mask, padding_mask
from pages.learn.attention_without_the_matrix.experiment import backward, memory
from pages.learn.attention_without_the_matrix.experiment.tiles import attend_in_tiles, steps, tiles

B, H, H_KV, T, S, D, D_V = 2, 6, 3, 11, 13, 5, 7


def tensors(dtype: torch.dtype, seed: int = 0) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    shapes = (B, H, T, D), (B, H_KV, S, D), (B, H_KV, S, D_V)
    return tuple(torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes)


def torch_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask) -> torch.Tensor:
    return scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


# Float32 rounds each number by a relative error of up to 6e-8. A score of 5 is then off by about
# 3e-7, which exp turns into a relative error, and values reach 3.5. So 2e-6 is near the rounding
# error and a thousandth of what a missing factor would change. In float64, the sums agree to 1e-12.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6}


@pytest.mark.parametrize("seed", range(50))
def test_random_tiles_in_random_order_match_torch_attention(seed: int):
    choose = random.Random(seed)
    tile = choose.randint(1, T + 2), choose.randint(1, S + 2)
    order = choose.sample(range(n := len(tiles(T, S, tile))), n)
    mask = choose.choice([None, causal_mask(T, S), causal_mask(T, S, window=3)])
    for dtype, tolerance in TOLERANCE.items():
        q, k, v = tensors(dtype, seed)
        result = attend_in_tiles(q, k, v, tile, mask=mask, order=order).output
        assert_close(result, torch_attention(q, k, v, mask), atol=tolerance, rtol=0)
        assert_close(result, attend(q, k, v, mask=mask).context, atol=tolerance, rtol=0)


def test_fully_masked_query_gets_zeros_instead_of_nan():
    q, k, v = tensors(torch.float64)
    real = torch.ones(B, S)
    real[0, :] = 0  # The first text is all padding.
    real[1, :6] = 0  # In the second text, the leftmost tiles are fully masked.
    mask = padding_mask(real) & causal_mask(T, S)
    for tile in ((2, 3), (T, S), (1, 1)):
        rows = attend_in_tiles(q, k, v, tile, mask=mask)
        assert_close(rows.output, attend(q, k, v, mask=mask).context, atol=1e-12, rtol=0)
        assert rows.output[0].count_nonzero() == 0


def test_large_scores_do_not_overflow():
    q, k, v = (of * 100 for of in tensors(torch.float32))
    result = attend_in_tiles(q, k, v, (3, 4)).output
    assert result.isfinite().all()
    assert_close(result, torch_attention(q, k, v, None), atol=1e-2, rtol=1e-5)


def test_steps_skip_masked_tiles():
    q, k, v = (of[0, 0] for of in tensors(torch.float64))
    mask = causal_mask(T, T)
    result = list(steps(q, k[:T], v[:T], (4, 3), mask=mask))
    expected = [
        (start, key) for start in (0, 4, 8) for key in (0, 3, 6, 9) if key <= min(start + 3, T - 1)
    ]
    assert [(step.queries.start, step.keys.start) for step in result] == expected
    assert len(tiles(T, T, (4, 3))) - len(result) == 3
    for step in result:
        assert step.scores.shape == (
            step.queries.stop - step.queries.start,
            step.keys.stop - step.keys.start,
        )
        m = step.rows.select(step.queries).m
        assert_close(step.factor, torch.exp(step.before.m - m))
    # Rows of later tiles are unchanged.
    assert result[0].rows.m[4:].tolist() == [-math.inf] * (T - 4)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tile", [(2, 3), (4, 13), (1, 1)])
def test_gradients_match_autograd(causal: bool, tile: tuple[int, int]):
    q, k, v = (of[0, 0].requires_grad_() for of in tensors(torch.float64))
    mask = causal_mask(T, S) if causal else None
    upstream = torch.randn(T, D_V, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = torch.autograd.grad(
        attend(q, k, v, mask=mask, scale=0.4).context, (q, k, v), upstream
    )
    with torch.no_grad():
        rows = attend_in_tiles(q, k, v, (3, 5), mask=mask, scale=0.4)
        result = backward.gradients(q, k, v, rows, upstream, tile, scale=0.4, mask=mask)
    for one, other in zip((result.q, result.k, result.v), expected, strict=True):
        assert_close(one, other, atol=1e-12, rtol=0)
    assert result.n_live_weights == tile[0] * tile[1]
    n_tiles = sum(
        (a.stop - a.start) * (b.stop - b.start)
        for a, b in tiles(T, S, tile)
        if mask is None or mask[a, b].any()
    )
    assert result.n_weights == n_tiles


def test_matrix_of_8192_tokens_takes_268_million_bytes():
    full_matrix = memory.whole_matrix(8192, 64)
    assert full_matrix.n_saved * 4 == 268_435_456
    assert full_matrix.n_transferred == 4 * 8192**2 + 4 * 8192 * 64


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tile", [(4, 3), (3, 4), (1, 1), (20, 20), (5, 2)])
def test_memory_traffic_matches_the_steps(tile: tuple[int, int], causal: bool):
    """Count reads: query tiles once, keys and values once per query tile."""
    size = 11
    q, k, v = (of[0, 0, :size] for of in tensors(torch.float64))
    v = v[:, :D]
    mask = causal_mask(size, size) if causal else None
    result = list(steps(q, k, v, tile, mask=mask))
    keys = sum(step.keys.stop - step.keys.start for step in result)
    counts = memory.in_tiles(size, D, tile, causal=causal)
    assert counts.n_transferred == 2 * size * D + 2 * keys * D + 2 * size
    assert counts.n_operations == 4 * D * sum(step.scores.numel() for step in result)
    assert counts.n_saved == 2 * size


def test_fast_memory_fits_one_tile_of_each_tensor():
    q, k, v = (of[0, 0] for of in tensors(torch.float64))
    step = next(steps(q, k, v[:, :D], (4, 3)))
    tile_rows = step.rows.select(step.queries)
    buffers = [q[step.queries], k[step.keys], v[step.keys, :D], step.scores]
    buffers += [tile_rows.m, tile_rows.l, tile_rows.o]
    assert memory.fast_numbers(D, (4, 3)) == sum(of.numel() for of in buffers)
