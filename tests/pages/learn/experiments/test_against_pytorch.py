"""Six implementations of attention: outputs, products and memory."""

import pytest
import torch
from torch.testing import assert_close

from attention_core.ladder import MultiHeadAttention
from pages.learn.against_pytorch import experiment as against_pytorch

BATCH, TOKENS, WIDTH, HEADS = 2, 7, 24, 4


def case(*, causal: bool = True, qkv_bias: bool = True) -> tuple[MultiHeadAttention, torch.Tensor]:
    ours = against_pytorch.make_attention(
        WIDTH, HEADS, TOKENS, causal=causal, qkv_bias=qkv_bias, seed=5
    )
    return ours, against_pytorch.random_input(BATCH, TOKENS, WIDTH, seed=6)


@pytest.mark.parametrize("kind", against_pytorch.KINDS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("qkv_bias", [False, True])
def test_all_implementations_agree(kind: str, causal: bool, qkv_bias: bool):
    ours, x = case(causal=causal, qkv_bias=qkv_bias)
    module = against_pytorch.variant(kind, ours)
    assert not module.training
    for mode in (torch.inference_mode(), torch.enable_grad()):
        with mode:
            assert_close(module(x), ours(x), atol=1e-5, rtol=1e-5)


def test_different_weights_are_detected():
    ours, x = case()
    other = against_pytorch.make_attention(WIDTH, HEADS, TOKENS, causal=True, qkv_bias=True, seed=7)
    assert against_pytorch.largest_difference(ours(x), other(x)) > 0.01


def test_copies_do_not_share_memory():
    ours, x = case()
    before = ours(x)
    for kind in against_pytorch.KINDS:
        if kind != against_pytorch.SPLIT:
            with torch.no_grad():
                for parameter in against_pytorch.variant(kind, ours).parameters():
                    parameter.zero_()
    assert_close(ours(x), before, atol=0, rtol=0)


def test_seed_is_reproducible_and_leaves_the_global_rng_unchanged():
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    first, x = case()
    assert torch.rand(1) == expected
    second, y = case()
    assert_close(first(x), second(y), atol=0, rtol=0)


@pytest.mark.parametrize(("n_heads", "width"), [(1, 10), (5, 10)])
@pytest.mark.parametrize("kind", against_pytorch.KINDS)
def test_counted_products_match_the_formula(kind: str, n_heads: int, width: int):
    ours = against_pytorch.make_attention(width, n_heads, 3, causal=True, qkv_bias=False, seed=0)
    x = against_pytorch.random_input(2, 3, width, seed=0)
    counts = against_pytorch.count_products(against_pytorch.variant(kind, ours), x)
    # The output projection.
    assert counts.projections == against_pytorch.qkv_products(kind, n_heads) + 1
    kernel = kind in (against_pytorch.MODULE, against_pytorch.SDPA)
    batched = 2 * n_heads if kind == against_pytorch.WRAPPER else 2
    assert (counts.batched, counts.kernels) == ((0, 1) if kernel else (batched, 0))


@pytest.mark.parametrize("tokens", [HEADS, WIDTH])
def test_ambiguous_square_matrix_is_not_labeled(tokens: int):
    ours = against_pytorch.make_attention(WIDTH, HEADS, WIDTH, causal=True, qkv_bias=False, seed=0)
    x = against_pytorch.random_input(1, tokens, WIDTH, seed=0)
    assert against_pytorch.saved_for_backward(ours, x, n_heads=HEADS).square is None


def test_head_count_divides_every_width_of_the_series():
    assert all(
        width % n == 0 for n in against_pytorch.SERIES_HEADS for width in (192, 384, 576, 768)
    )
