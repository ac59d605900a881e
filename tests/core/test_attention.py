"""`MultiHeadAttention`: parity with PyTorch, caches, memory, and invalid arguments."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from attention_core import LatentAttention, LatentConfig, MultiHeadAttention, causal_mask
from attention_core.positions.rotary import rotary_angles

B, T, S, C, H, H_KV, D = 2, 7, 5, 24, 6, 2, 4
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def module(**options: object) -> MultiHeadAttention:
    torch.manual_seed(3)
    attention = MultiHeadAttention(C, H, **options).eval()  # type: ignore[arg-type]
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return attention


def states(n_tokens: int = T, seed: int = 5) -> Tensor:
    return torch.randn(B, n_tokens, C, generator=torch.Generator().manual_seed(seed))


def attention_with_loops(
    attention: MultiHeadAttention, x: Tensor, source: Tensor, mask: Tensor | None
) -> Tensor:
    """Compute the module's result one head and one query at a time."""
    q, k, v = attention.qkv.weight.split(attention.widths)
    biases = attention.qkv.bias.split(attention.widths)
    parts = zip((x, source, source), (q, k, v), biases, strict=True)
    projected = [states @ weight.T + bias for states, weight, bias in parts]
    rows = []
    for batch in range(B):
        for query in range(x.shape[1]):
            heads = []
            for head in range(H):
                of_q, of_kv = slice(D * head, D * head + D), head // (H // attention.n_kv_heads)
                group = slice(D * of_kv, D * of_kv + D)
                scores = projected[1][batch, :, group] @ projected[0][batch, query, of_q] / D**0.5
                if mask is not None:
                    scores = scores.masked_fill(~mask[query], -torch.inf)
                heads.append(scores.softmax(0) @ projected[2][batch, :, group])
            rows.append(torch.cat(heads) @ attention.out.weight.T + attention.out.bias)
    return torch.stack(rows).view(B, x.shape[1], C)


@pytest.mark.parametrize("n_kv_heads", [H, H_KV, 1])
@pytest.mark.parametrize("causal", [True, False])
@torch.no_grad()
def test_every_head_matches_a_loop(n_kv_heads: int, causal: bool):
    attention, x = module(n_kv_heads=n_kv_heads, causal=causal), states()
    mask = causal_mask(T, T) if causal else None
    assert_close(attention(x), attention_with_loops(attention, x, x, mask), **CLOSE)
    assert_close(attention.record(x).output, attention(x), **CLOSE)


@pytest.mark.parametrize("n_kv_heads", [H, H_KV, 1])
@torch.no_grad()
def test_cross_attention_reads_the_memory(n_kv_heads: int):
    attention, x, memory = module(n_kv_heads=n_kv_heads), states(), states(S, seed=6)
    assert_close(
        attention(x, memory=memory), attention_with_loops(attention, x, memory, None), **CLOSE
    )
    hidden = torch.tensor([True, False, True, True, False]).expand(T, S)
    assert_close(
        attention(x, memory=memory, mask=hidden),
        attention_with_loops(attention, x, memory, hidden),
        **CLOSE,
    )
    assert attention.record(x, memory=memory).weights.shape == (B, H, T, S)


@torch.no_grad()
def test_equals_torch_multihead_attention():
    attention, x = module(), states()
    theirs = torch.nn.MultiheadAttention(C, H, batch_first=True).eval()
    theirs.in_proj_weight.copy_(attention.qkv.weight)
    theirs.in_proj_bias.copy_(attention.qkv.bias)
    theirs.out_proj.weight.copy_(attention.out.weight)
    theirs.out_proj.bias.copy_(attention.out.bias)
    output, weights = theirs(x, x, x, average_attn_weights=False)
    assert_close(attention(x), output, **CLOSE)
    assert_close(attention.record(x).weights, weights, **CLOSE)


@pytest.mark.parametrize("n_kv_heads", [H, H_KV, 1])
@pytest.mark.parametrize("chunks", [(1,) * T, (4, 1, 2), (T,)])
@torch.no_grad()
def test_cached_chunks_give_the_same_result(n_kv_heads: int, chunks: tuple[int, ...]):
    attention = module(n_kv_heads=n_kv_heads, causal=True, rope_theta=500.0)
    cache = attention.new_cache(B, T)
    parts = [attention(part, cache=cache) for part in states().split(chunks, dim=1)]
    assert_close(torch.cat(parts, dim=1), attention(states()), **CLOSE)
    assert cache.length == T
    assert cache.nbytes == 2 * B * n_kv_heads * T * D * 4


@torch.no_grad()
def test_positions_can_be_passed():
    attention, x = module(causal=True, rope_theta=500.0), states()
    far = torch.arange(T) + 90
    # rotary scores only depend on relative positions
    assert_close(attention(x, positions=far), attention(x), atol=1e-4, rtol=1e-4)
    positions = torch.arange(T) * 3
    assert not torch.allclose(attention(x, positions=positions), attention(x), atol=1e-3)
    rotation = rotary_angles(positions, D, 500.0, x.dtype)
    assert torch.equal(attention(x, positions=rotation), attention(x, positions=positions))


@torch.no_grad()
def test_mask_and_causality_are_combined():
    attention, x = module(causal=True), states()
    mask = torch.ones(T, T, dtype=torch.bool)
    mask[:, 2] = False
    mask[2, 2] = True
    both = mask & causal_mask(T, T)
    assert_close(attention(x, mask=mask), attention_with_loops(attention, x, x, both), **CLOSE)


def test_dropout_only_applies_in_training():
    attention, x = module(dropout=0.5), states()
    assert torch.equal(attention(x), attention(x))
    attention.train()
    assert not torch.equal(attention(x), attention(x))


@torch.no_grad()
def test_latent_attention_has_the_same_interface():
    sizes = LatentConfig(kv_rank=10, nope_head_size=4, rope_head_size=2, v_head_size=3)
    torch.manual_seed(3)
    attention = LatentAttention(C, H, sizes, causal=True)
    cache = attention.new_cache(B, T)
    parts = [attention(part, cache=cache) for part in states().split((4, 1, 2), dim=1)]
    assert_close(torch.cat(parts, dim=1), attention(states()), **CLOSE)
    assert cache.nbytes == B * T * (10 + 2) * 4


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ({"d_model": 25}, "25.*6"),
        ({"n_heads": 0}, "n_heads.*0"),
        ({"n_kv_heads": 4}, "6.*4"),
        ({"head_size": 5, "rope_theta": 9.0}, "5"),
        ({"dropout": 1.0}, "1.0"),
    ],
)
def test_rejects_invalid_sizes(options: dict[str, object], numbers: str):
    with pytest.raises(ValueError, match=numbers):
        MultiHeadAttention(**{"d_model": C, "n_heads": H, **options})  # type: ignore[arg-type]


def test_rejects_invalid_calls():
    attention, x = module(), states()
    with pytest.raises(ValueError, match=r"24.*\(2, 7, 23\)"):
        attention(x[..., 1:])
    with pytest.raises(ValueError, match=r"\(7, 24\)"):
        attention(x[0])
    with pytest.raises(ValueError, match="memory"):
        attention(x, memory=x, cache=attention.new_cache(B, T))
    with pytest.raises(ValueError, match="causal=True"):
        module(causal=True)(x, memory=x)
    with pytest.raises(ValueError, match="bool"):
        attention(x, mask=torch.ones(T, T))
