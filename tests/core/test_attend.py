"""Attention: parity with PyTorch, invariants, grouped heads, and invalid arguments."""

import math

import pytest
import torch
from torch.testing import assert_close

from attention_core import attend, attention_weights, causal_mask, padding_mask

B, T, S, H, H_KV, D, D_V = 3, 4, 7, 6, 2, 5, 9


def inputs(seed: int = 0, n_kv_heads: int = H) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(B, H, T, D, generator=generator),
        torch.randn(B, n_kv_heads, S, D, generator=generator),
        torch.randn(B, n_kv_heads, S, D_V, generator=generator),
    )


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("n_kv_heads", [H, H_KV, 1])
@pytest.mark.parametrize("scale", [None, 0.7])
def test_equals_the_fused_kernel(masked: bool, n_kv_heads: int, scale: float | None):
    q, k, v = inputs(n_kv_heads=n_kv_heads)
    mask = causal_mask(T, S) if masked else None
    record = attend(q, k, v, mask=mask, scale=scale)
    fused = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, scale=scale, enable_gqa=True
    )
    assert_close(record.context, fused, atol=1e-5, rtol=0)


def test_grouped_heads_equal_repeated_keys_and_values():
    q, k, v = inputs(n_kv_heads=H_KV)
    grouped = attend(q, k, v, mask=causal_mask(T, S))
    repeated = attend(
        q,
        k.repeat_interleave(H // H_KV, dim=1),
        v.repeat_interleave(H // H_KV, dim=1),
        mask=causal_mask(T, S),
    )
    for name in ("scores", "masked_scores", "scaled_scores", "weights", "context"):
        assert_close(getattr(grouped, name), getattr(repeated, name))
    assert grouped.k.shape == (B, H_KV, S, D)


def test_record_contains_the_steps_in_order():
    q, k, v = inputs()
    mask = causal_mask(T, S)
    record = attend(q, k, v, mask=mask)
    assert_close(record.scores, torch.einsum("bhtd,bhsd->bhts", q, k))
    assert bool((record.masked_scores == -math.inf).eq(~mask).all())
    assert_close(record.scaled_scores, record.masked_scores / math.sqrt(D))
    assert_close(record.weights.sum(-1), torch.ones(B, H, T))
    assert bool((record.weights[..., ~mask] == 0).all())
    assert_close(record.context, torch.einsum("bhts,bhsd->bhtd", record.weights, v))
    assert record.scale == 1 / math.sqrt(D)


def test_fully_masked_query_gets_zeros():
    q, k, v = inputs()
    mask = torch.ones(T, S, dtype=torch.bool)
    mask[1] = False
    record = attend(q, k, v, mask=mask)
    assert bool((record.weights[:, :, 1] == 0).all())
    assert bool((record.context[:, :, 1] == 0).all())
    assert bool(record.context.isfinite().all())


def test_dropout_preserves_the_expectation():
    torch.manual_seed(0)
    q, k, v = inputs()
    p, draws = 0.4, 4000
    total = torch.zeros(B, H, T, S)
    for _ in range(draws):
        record = attend(q, k, v, dropout_p=p)
        not_dropped = record.weights != 0
        assert_close(record.weights[not_dropped], record.attention[not_dropped] / (1 - p))
        total += record.weights
    # the standard error of a mean weight is at most sqrt(p / (1 - p) / draws) = 0.013
    assert_close(total / draws, record.attention, atol=5 * 0.013, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes(dtype: torch.dtype):
    q, k, v = inputs()
    exact = attend(q, k, v, mask=causal_mask(T, S)).context
    record = attend(q.to(dtype), k.to(dtype), v.to(dtype), mask=causal_mask(T, S))
    assert record.weights.dtype == record.context.dtype == dtype
    # near the largest inputs (about 3), bfloat16 values are 2**-6 apart
    tolerance = {torch.bfloat16: 6e-2, torch.float16: 8e-3, torch.float64: 1e-5}[dtype]
    assert_close(record.context.float(), exact, atol=tolerance, rtol=0)


def test_softmax_of_huge_scores_is_finite():
    weights = attention_weights(torch.tensor([[1e4, 1e4 - 1.0, -1e4]]))
    assert_close(weights, torch.softmax(torch.tensor([[1.0, 0.0, -2e4]]), dim=-1))


def test_causal_mask_aligns_the_last_query_with_the_last_key():
    assert causal_mask(3, 3).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert causal_mask(2, 4).tolist() == [[True, True, True, False], [True] * 4]
    assert torch.equal(causal_mask(2, 5), causal_mask(5, 5)[-2:])


def test_padding_mask_broadcasts_over_heads_and_queries():
    q, k, v = inputs()
    real = torch.ones(B, S, dtype=torch.long)
    real[1, 5:] = 0
    record = attend(q, k, v, mask=padding_mask(real))
    assert bool((record.weights[1, ..., 5:] == 0).all())
    assert bool((record.weights[0] > 0).all())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": torch.zeros(B, H, S, D + 1)}, "5.*6"),
        ({"v": torch.zeros(B, H, S + 1, D)}, "7.*8"),
        ({"k": torch.zeros(B, 4, S, D), "v": torch.zeros(B, 4, S, D)}, "6.*4"),
        ({"dropout_p": 1.5}, r"1\.5"),
        ({"scale": 0.0}, r"0\.0"),
        ({"scale": math.nan}, "scale.*nan"),
        ({"v": torch.zeros(B, 2, S, D)}, r"k \(3, 6, 7, 5\), v \(3, 2, 7, 5\)"),
        ({"q": torch.zeros(B, H, 0, D)}, r"q \(3, 6, 0, 5\)"),
        ({"q": torch.zeros(B + 1, H, T, D)}, r"q \(4, 6, 4, 5\), k \(3, 6, 7, 5\)"),
        ({"k": torch.zeros(S, D), "v": torch.zeros(S, D)}, r"q \(3, 6, 4, 5\), k \(7, 5\)"),
        ({"mask": torch.ones(T, S, dtype=torch.int64)}, "mask.*int64"),
        ({"mask": torch.ones(T, S + 1, dtype=torch.bool)}, r"mask \(4, 8\).*\(3, 6, 4, 7\)"),
    ],
)
def test_rejects_invalid_arguments(change: dict[str, object], message: str):
    q, k, v = inputs()
    with pytest.raises(ValueError, match=message):
        attend(**{"q": q, "k": k, "v": v} | change)  # type: ignore[arg-type]


@pytest.mark.parametrize(("n_queries", "n_keys"), [(0, 3), (2.5, 3), (4, 3)])
def test_rejects_invalid_mask_sizes(n_queries: int, n_keys: int):
    with pytest.raises(ValueError, match=f"n_queries.*{n_queries}"):
        causal_mask(n_queries, n_keys)
