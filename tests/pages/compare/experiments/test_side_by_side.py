"""Compare attention maps merged over groups of tokens to explicit loops."""

import pytest
import torch
from torch.testing import assert_close

from pages.compare.side_by_side.experiment import (
    difference,
    merge_tokens,
    renormalize,
    visible_groups,
)

QUERY_GROUPS = ((0,), (1, 2, 3), (4,))
KEY_GROUPS = ((0, 1), (2,), (3, 4, 5), (6,))


def weights(*shape: int) -> torch.Tensor:
    torch.manual_seed(3)
    return torch.randn(*shape).softmax(-1)


def test_merge_matches_a_loop():
    maps = weights(2, 3, 5, 7)
    merged = merge_tokens(maps, QUERY_GROUPS, KEY_GROUPS)
    assert merged.shape == (2, 3, 3, 4)
    for layer in range(2):
        for head in range(3):
            for i, queries in enumerate(QUERY_GROUPS):
                for j, keys in enumerate(KEY_GROUPS):
                    total = 0.0
                    for query in queries:
                        for key in keys:
                            total += float(maps[layer, head, query, key])
                    assert float(merged[layer, head, i, j]) == pytest.approx(
                        total / len(queries), abs=1e-6
                    )


def test_merged_rows_sum_to_one_unless_a_key_is_left_out():
    maps = weights(5, 7)
    assert_close(merge_tokens(maps, QUERY_GROUPS, KEY_GROUPS).sum(-1), torch.ones(3))
    without = merge_tokens(maps, QUERY_GROUPS, KEY_GROUPS[1:])
    left_out = torch.stack([maps[list(g)][:, :2].sum(-1).mean() for g in QUERY_GROUPS])
    assert_close(without.sum(-1), 1 - left_out)


@pytest.mark.parametrize(
    ("queries", "keys", "name"),
    [
        ([[0], []], [[1]], "query group 1"),
        ([[0]], [[7]], "token 7"),
        ([[-1]], [[1]], "token -1"),
        ([[0, 1], [1]], [[1]], "token 1"),
    ],
)
def test_rejects_invalid_groups(queries, keys, name):
    with pytest.raises(ValueError, match=name):
        merge_tokens(weights(5, 7), queries, keys)


def test_group_mask():
    groups = ((0,), (1, 2), (3,))
    assert visible_groups(groups, groups, causal=False).all()
    # A group can attend to itself and to earlier groups, even if its first token sees only a part.
    assert visible_groups(groups, groups, causal=True).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    # A cell is masked exactly where the merged weights of a causal head are zero.
    maps = weights(5, 5).tril()
    maps = maps / maps.sum(-1, keepdim=True)
    queries, keys = ((0, 1), (2,), (3, 4)), ((0,), (1, 2), (3,), (4,))
    visible = visible_groups(queries, keys, causal=True)
    assert torch.equal(merge_tokens(maps, queries, keys) > 0, visible)


def test_renormalized_rows_sum_to_one():
    maps, key_mask = weights(3, 4), torch.tensor([[1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]]).bool()
    shares = renormalize(maps, key_mask)
    assert_close(shares[0], torch.cat([maps[0, :2] / maps[0, :2].sum(), torch.zeros(2)]))
    assert_close(shares[:2].sum(-1), torch.ones(2))
    assert shares[2].isnan().all()


def test_difference_is_signed_and_can_be_missing():
    left, right = weights(3, 4), weights(3, 4).flip(-1)
    comparable = torch.ones(3, 4, dtype=torch.bool).tril(1)
    signed = difference(left, right, comparable)
    for row in range(3):
        for column in range(4):
            if comparable[row, column]:
                assert float(signed[row, column]) == float(left[row, column] - right[row, column])
            else:
                assert signed[row, column].isnan()
    assert_close(signed.nan_to_num(), -difference(right, left, comparable).nan_to_num())
