"""Contributions compared with the vectors themselves, key by key."""

import torch

from attention_core import attend
from attention_core.analysis.contributions import contributions, value_norms

B, H, H_KV, T, S, D, C = 2, 6, 3, 4, 5, 7, 11


def test_contributions_are_norms_of_weighted_vectors():
    torch.manual_seed(0)
    record = attend(torch.randn(B, H, T, D), torch.randn(B, H_KV, S, D), torch.randn(B, H_KV, S, D))
    out_weight = torch.randn(H * D, C)
    norms = value_norms(record.v, out_weight)
    result = contributions(record.weights, norms)
    assert norms.shape == (B, H, S)
    assert result.shape == (B, H, T, S)
    for b in range(B):
        for h in range(H):
            rows = out_weight[h * D : (h + 1) * D]  # this head's rows of W_O
            for i in range(T):
                for j in range(S):
                    vector = record.weights[b, h, i, j] * record.v[b, h // 2, j] @ rows
                    torch.testing.assert_close(result[b, h, i, j], vector.norm())


def test_weighted_vectors_sum_to_the_output():
    torch.manual_seed(1)
    record = attend(torch.randn(1, H, T, D), torch.randn(1, H, S, D), torch.randn(1, H, S, D))
    out_weight = torch.randn(H * D, C)
    by_head = out_weight.view(H, D, C)
    vectors = torch.einsum("hij,hjd,hdc->hijc", record.weights[0], record.v[0], by_head)
    torch.testing.assert_close(
        vectors.norm(dim=-1), contributions(record.weights[0], value_norms(record.v, out_weight)[0])
    )
    merged = record.context[0].transpose(0, 1).reshape(T, H * D)
    torch.testing.assert_close(vectors.sum(dim=(0, 2)), merged @ out_weight)
