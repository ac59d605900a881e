"""Distances of predictions and of vectors, against numbers worked out by hand."""

import math

import torch
from torch.testing import assert_close

from attention_core.experiments.distances import cosine_distance, divergence, relative_distance


def test_divergence_of_predictions():
    before = torch.tensor([math.log(0.5), math.log(0.25), math.log(0.25)])
    after = torch.tensor([[math.log(0.25), math.log(0.5), math.log(0.25)], before.tolist()])
    expected = 0.5 * math.log(2) - 0.25 * math.log(2)
    # logits that differ by a constant are the same prediction
    assert_close(divergence(before, after + 3.0), torch.tensor([expected, 0.0]).double())


def test_distances_of_vectors():
    states = torch.tensor([[3.0, 4.0], [1.0, 0.0]])
    turned = torch.tensor([[[6.0, 8.0], [0.0, 2.0]]])
    assert_close(cosine_distance(states, turned), torch.tensor([[0.0, 1.0]]).double())
    relative = torch.tensor([[1.0, math.sqrt(5.0)]]).double()
    assert_close(relative_distance(states, turned), relative)
