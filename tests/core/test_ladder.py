"""Each attention variant reduces to the simpler one before it; dropout; invalid sizes."""

import pytest
import torch
from torch.testing import assert_close

from attention_core import (
    CausalAttention,
    MultiHeadAttentionWrapper,
    SelfAttentionV1,
    SelfAttentionV2,
    merge_heads,
    simple_self_attention,
    split_heads,
)
from attention_core.ladder import MultiHeadAttention

B, T, D_IN, D_OUT, HEADS = 2, 5, 7, 12, 3


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(B, T, D_IN, generator=torch.Generator().manual_seed(1))


def copy_projections(source: torch.nn.Module, target: torch.nn.Module) -> None:
    for name in ("W_query", "W_key", "W_value"):
        getattr(target, name).load_state_dict(getattr(source, name).state_dict())


def test_v1_with_identity_matrices_equals_simplified_attention(x: torch.Tensor):
    head = SelfAttentionV1(D_IN, D_IN)
    with torch.no_grad():
        for matrix in (head.W_query, head.W_key, head.W_value):
            matrix.copy_(torch.eye(D_IN))
        head.W_query.mul_(D_IN**0.5)  # v1 scales by 1/sqrt(d), the simplified form doesn't
        assert_close(head(x), simple_self_attention(x)[2])


def test_v2_with_transposed_weights_equals_v1(x: torch.Tensor):
    first, second = SelfAttentionV1(D_IN, D_OUT), SelfAttentionV2(D_IN, D_OUT)
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            getattr(second, name).weight.copy_(getattr(first, name).T)
        assert_close(second(x), first(x))


def test_causal_without_mask_equals_v2(x: torch.Tensor):
    plain = SelfAttentionV2(D_IN, D_OUT, qkv_bias=True)
    causal = CausalAttention(D_IN, D_OUT, T, 0.0, qkv_bias=True, causal=False)
    copy_projections(plain, causal)
    assert_close(causal(x), plain(x))
    causal.causal = True
    assert_close(causal(x)[:, -1], plain(x)[:, -1])  # the last token attends to all tokens in both
    assert not torch.allclose(causal(x)[:, 0], plain(x)[:, 0])


@pytest.mark.parametrize("causal", [True, False])
def test_weight_splits_with_wrapper_weights_equal_the_wrapper(x: torch.Tensor, causal: bool):
    size = D_OUT // HEADS
    wrapper = MultiHeadAttentionWrapper(D_IN, size, T, 0.0, HEADS, qkv_bias=True, causal=causal)
    splits = MultiHeadAttention(D_IN, D_OUT, T, 0.0, HEADS, qkv_bias=True, causal=causal)
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            for kind in ("weight", "bias"):
                parts = [getattr(getattr(head, name), kind) for head in wrapper.heads]
                getattr(getattr(splits, name), kind).copy_(torch.cat(parts))
        splits.out_proj.weight.copy_(torch.eye(D_OUT))
        splits.out_proj.bias.zero_()
        assert_close(splits(x), wrapper(x))


def test_weight_splits_equal_torch_multihead_attention(x: torch.Tensor):
    ours = MultiHeadAttention(D_OUT, D_OUT, T, 0.0, HEADS, qkv_bias=True)
    theirs = torch.nn.MultiheadAttention(D_OUT, HEADS, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(
            torch.cat([ours.W_query.weight, ours.W_key.weight, ours.W_value.weight])
        )
        theirs.in_proj_bias.copy_(
            torch.cat([ours.W_query.bias, ours.W_key.bias, ours.W_value.bias])
        )
        theirs.out_proj.load_state_dict(ours.out_proj.state_dict())
    wide = torch.randn(B, T, D_OUT, generator=torch.Generator().manual_seed(2))
    forbidden = torch.ones(T, T, dtype=torch.bool).triu(1)
    output, weights = theirs(wide, wide, wide, attn_mask=forbidden, average_attn_weights=False)
    record = ours.record(wide)
    assert record.output is not None
    assert_close(record.output, output, atol=1e-5, rtol=0)
    assert_close(record.weights, weights, atol=1e-5, rtol=0)
    assert_close(ours(wide), record.output)


@pytest.mark.parametrize(
    "heads",
    [
        CausalAttention(D_IN, D_OUT, T, 0.5),
        MultiHeadAttentionWrapper(D_IN, D_OUT, T, 0.5, HEADS),
        MultiHeadAttention(D_IN, D_OUT, T, 0.5, HEADS),
    ],
)
def test_dropout_only_applies_in_training(heads: torch.nn.Module, x: torch.Tensor):
    torch.manual_seed(0)
    assert not torch.allclose(heads(x), heads(x))
    heads.eval()
    assert_close(heads(x), heads(x), rtol=0, atol=0)


def test_merge_heads_inverts_split_heads():
    x = torch.arange(B * T * D_OUT).view(B, T, D_OUT)
    split = split_heads(x, HEADS)
    assert split.shape == (B, HEADS, T, D_OUT // HEADS)
    assert torch.equal(merge_heads(split), x)
    assert torch.equal(split[1, 2, 3], x[1, 3, -D_OUT // HEADS :])
    assert not torch.equal(split, x.view(B, HEADS, T, D_OUT // HEADS))


def test_rejects_invalid_sizes(x: torch.Tensor):
    for numbers, call in {
        "12.*5": lambda: MultiHeadAttention(D_IN, D_OUT, T, 0.0, 5),
        "5.*4": lambda: MultiHeadAttention(D_IN, D_OUT, 4, 0.0, HEADS)(x),
        r"1\.0": lambda: CausalAttention(D_IN, D_OUT, T, 1.0),
        "0": lambda: MultiHeadAttentionWrapper(D_IN, D_OUT, T, 0.0, 0),
        "d_in=0": lambda: MultiHeadAttention(0, D_OUT, T, 0.0, HEADS),
    }.items():
        with pytest.raises(ValueError, match=numbers):
            call()
