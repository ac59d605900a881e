"""Distances between vectors, including zero vectors."""

import pytest
import torch

from attention_core.analysis.distances import cosine_distance, ratio, relative_distance

BEFORE = torch.tensor([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
AFTER = torch.tensor([[3.0, 4.0, 5.0], [0.0, 0.0, 0.0], [0.0, 2.0, 0.0]])


def test_unchanged_zero_vector_has_distance_zero():
    assert relative_distance(BEFORE, AFTER).tolist() == [1.0, 0.0, float("inf")]
    assert cosine_distance(BEFORE, AFTER).tolist() == pytest.approx([1 - 0.5**0.5, 0.0, 1.0])


def test_ratio_of_zeros():
    part, whole = torch.tensor([0.0, 0.0, 6.0]), torch.tensor([0.0, 2.0, 4.0])
    assert ratio(part, whole).tolist() == [0.0, 0.0, 1.5]
    assert ratio(part, whole, of_zeros=1.0).tolist() == [1.0, 0.0, 1.5]
