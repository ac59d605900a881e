"""Six ways to the same attention: equal outputs, counted products, measured memory."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from attention_core.ladder import MultiHeadAttention
from pages.learn.against_pytorch import experiment as against_pytorch

BATCH, TOKENS, WIDTH, HEADS = 2, 7, 24, 4
HEAD_SIZE = WIDTH // HEADS


def case(*, causal: bool = True, qkv_bias: bool = True) -> tuple[MultiHeadAttention, torch.Tensor]:
    ours = against_pytorch.make(WIDTH, HEADS, TOKENS, causal=causal, qkv_bias=qkv_bias, seed=5)
    return ours, against_pytorch.random_input(BATCH, TOKENS, WIDTH, seed=6)


@pytest.mark.parametrize("kind", against_pytorch.KINDS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("qkv_bias", [False, True])
def test_every_kind_computes_the_same(kind: str, causal: bool, qkv_bias: bool):
    ours, x = case(causal=causal, qkv_bias=qkv_bias)
    module = against_pytorch.variant(kind, ours)
    assert not module.training
    for mode in (torch.inference_mode(), torch.enable_grad()):
        with mode:
            assert_close(module(x), ours(x), atol=1e-5, rtol=1e-5)


def test_comparison_is_against_torch_itself():
    """The peers built here by hand, not by the module under test."""
    ours, x = case()
    with torch.inference_mode():
        found = against_pytorch.compare(ours, x)
        theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
        theirs.load_state_dict(
            {
                "in_proj_weight": torch.cat(
                    [ours.W_query.weight, ours.W_key.weight, ours.W_value.weight]
                ),
                "in_proj_bias": torch.cat([ours.W_query.bias, ours.W_key.bias, ours.W_value.bias]),
                "out_proj.weight": ours.out_proj.weight,
                "out_proj.bias": ours.out_proj.bias,
            }
        )
        forbidden = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
        output, weights = theirs(x, x, x, attn_mask=forbidden)
    assert set(found.outputs) == set(against_pytorch.KINDS)
    assert_close(found.outputs[against_pytorch.MODULE], output, atol=1e-5, rtol=1e-5)
    assert_close(found.our_weights, weights, atol=1e-5, rtol=1e-5)
    assert_close(found.torch_weights, weights)
    assert found.our_weights.shape == (BATCH, TOKENS, TOKENS)
    assert found.difference(against_pytorch.SPLIT) == 0.0
    for kind in against_pytorch.KINDS:
        expected = float((found.outputs[kind] - found.outputs[against_pytorch.SPLIT]).abs().max())
        assert found.difference(kind) == expected < 1e-5
    assert found.weights_difference == float((found.our_weights - found.torch_weights).abs().max())


def test_other_weights_are_seen_as_different():
    ours, x = case()
    other = against_pytorch.make(WIDTH, HEADS, TOKENS, causal=True, qkv_bias=True, seed=7)
    assert against_pytorch.largest_difference(ours(x), other(x)) > 0.01


def test_biases_take_part():
    ours, x = case()
    fused = against_pytorch.FusedAttention(ours).eval()
    with torch.no_grad():
        fused.qkv.bias.zero_()
    assert against_pytorch.largest_difference(fused(x), ours(x)) > 1e-3


def test_copies_do_not_share_memory_with_the_original():
    ours, x = case()
    before = ours(x)
    for kind in against_pytorch.KINDS:
        if kind != against_pytorch.SPLIT:
            with torch.no_grad():
                for parameter in against_pytorch.variant(kind, ours).parameters():
                    parameter.zero_()
    assert_close(ours(x), before, atol=0, rtol=0)


def test_a_seed_is_repeatable_and_leaves_the_global_one_alone():
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    first, x = case()
    assert torch.rand(1) == expected
    second, y = case()
    assert_close(first(x), second(y), atol=0, rtol=0)


@pytest.mark.parametrize(("n_heads", "width"), [(1, 10), (2, 10), (5, 10), (96, 192)])
@pytest.mark.parametrize("kind", against_pytorch.KINDS)
def test_counted_products_are_those_of_the_formula(kind: str, n_heads: int, width: int):
    ours = against_pytorch.make(width, n_heads, 3, causal=True, qkv_bias=False, seed=0)
    x = against_pytorch.random_input(2, 3, width, seed=0)
    counted = against_pytorch.count_products(against_pytorch.variant(kind, ours), x)
    assert counted.projections == against_pytorch.qkv_products(kind, n_heads) + 1  # the output
    kernel = kind in (against_pytorch.MODULE, against_pytorch.SDPA)
    batched = 2 * n_heads if kind == against_pytorch.WRAPPER else 2
    assert (counted.batched, counted.kernels) == ((0, 1) if kernel else (batched, 0))


def test_linear_layers_are_called_as_often_as_products_are_counted():
    """A second way to count: hooks on the layers themselves."""
    ours, x = case()
    for kind in (
        against_pytorch.WRAPPER,
        against_pytorch.SPLIT,
        against_pytorch.FUSED,
        against_pytorch.SDPA,
    ):
        module, calls = against_pytorch.variant(kind, ours), []
        for layer in module.modules():
            if isinstance(layer, nn.Linear):
                layer.register_forward_hook(lambda *_, calls=calls: calls.append(1))
        assert against_pytorch.count_products(module, x).projections == len(calls)


def test_the_kernel_keeps_no_square_and_ours_keeps_at_least_one():
    ours, x = case(causal=False)
    one_square = BATCH * HEADS * TOKENS * TOKENS * 4
    assert against_pytorch.scores_bytes(BATCH, HEADS, TOKENS) == one_square
    for kind in against_pytorch.KINDS:
        kept = against_pytorch.kept_for_backward(
            against_pytorch.variant(kind, ours), x, n_heads=HEADS
        )
        if kind in (against_pytorch.MODULE, against_pytorch.SDPA):
            assert kept.square == 0
        else:
            assert kept.square == one_square  # the softmax keeps its result, shared with the sum
        # x, q, k, v and the merged context are (B, T, C) each
        assert kept.total >= 5 * BATCH * TOKENS * WIDTH * 4 + (kept.square or 0)


def test_what_is_kept_grows_with_the_square_of_the_tokens_only_without_the_kernel():
    ours = against_pytorch.make(WIDTH, HEADS, 400, causal=True, qkv_bias=False, seed=0)
    for kind, power in ((against_pytorch.SPLIT, 2), (against_pytorch.SDPA, 1)):
        module = against_pytorch.variant(kind, ours)
        sizes = [
            against_pytorch.kept_for_backward(
                module, against_pytorch.random_input(1, tokens, WIDTH, seed=0), n_heads=HEADS
            ).total
            for tokens in (200, 400)
        ]
        # the square is nearly all at these sizes, and q, k, v are the rest
        assert math.log2(sizes[1] / sizes[0]) == pytest.approx(power, abs=0.15)


@pytest.mark.parametrize("tokens", [HEADS, HEAD_SIZE, WIDTH])
def test_a_square_that_cannot_be_told_by_its_shape_is_not_claimed(tokens: int):
    ours = against_pytorch.make(WIDTH, HEADS, WIDTH, causal=True, qkv_bias=False, seed=0)
    x = against_pytorch.random_input(1, tokens, WIDTH, seed=0)
    assert against_pytorch.kept_for_backward(ours, x, n_heads=HEADS).square is None


def test_times_are_one_a_repeat_and_positive():
    found = against_pytorch.time_kinds(WIDTH, HEADS, TOKENS, repeats=2)
    assert list(found) == list(against_pytorch.KINDS)
    for samples in found.values():
        assert len(samples.values) == 2
        assert samples.low > 0


def test_series_heads_divide_every_width_of_the_series():
    assert all(
        width % n == 0 for n in against_pytorch.SERIES_HEADS for width in (192, 384, 576, 768)
    )


def test_what_does_not_fit_is_refused_with_its_numbers():
    with pytest.raises(ValueError, match=r"24.*divisible.*5"):
        against_pytorch.make(24, 5, 7, causal=True, qkv_bias=False, seed=0)
    with pytest.raises(ValueError, match="12 to 24"):
        against_pytorch.TorchModule(MultiHeadAttention(12, 24, 7, 0.0, 4))
    with pytest.raises(ValueError, match="no count for 'other' with 3"):
        against_pytorch.qkv_products("other", 3)
    with pytest.raises(ValueError, match="0 heads"):
        against_pytorch.qkv_products(against_pytorch.SPLIT, 0)
    with pytest.raises(ValueError, match=r"\(1, 2, 0, 4\)"):
        against_pytorch.scores_bytes(1, 2, 0)
    with pytest.raises(ValueError, match="repeats"):
        against_pytorch.time_kinds(WIDTH, HEADS, TOKENS, repeats=0)
