"""Compare dot products, cosines and neighbors of word vectors to known values."""

import pytest
import torch
from torch.testing import assert_close

from attention_core.lecture_inputs import JOURNEY
from pages.learn.similarity.experiment.word_vectors import largest, products, token_table
from tests.helpers.lectures import LECTURE_NUMBERS
from tests.helpers.tiny_models import TINY, build


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_notebook_dot_products():
    expected = torch.tensor(LECTURE_NUMBERS["002_simplified_self_attention"]["scores"])
    for row, x in zip(expected, JOURNEY.embeddings, strict=True):
        assert_close(products(x, JOURNEY.embeddings).dots, row, atol=5e-5, rtol=0)


def test_known_angles():
    rows = torch.tensor([[2.0, 0.0], [1.0, 1.0], [0.0, 3.0], [-1.0, 0.0], [0.0, 0.0]])
    dot_products = products(torch.tensor([0.5, 0.0]), rows)
    assert_close(dot_products.degrees, torch.tensor([0.0, 45.0, 90.0, 180.0, 90.0]))
    assert_close(dot_products.cosines[4], torch.tensor(0.0))


@pytest.mark.parametrize("without", [0, 6])
def test_largest_with_one_excluded(without: int):
    values = random(7, seed=5)
    ranked = sorted(set(range(7)) - {without}, key=lambda i: -float(values[i]))
    assert largest(values, 3, without=without).tolist() == ranked[:3]
    assert largest(values, 6, without=without).tolist() == ranked


@pytest.mark.parametrize("name", TINY)
def test_embedding_table_is_complete_and_not_a_copy(name: str):
    model = build(name)
    table = token_table(model)
    everything = torch.arange(model.config.vocab_size)
    assert_close(table, model.token_vectors(everything), atol=0, rtol=0)
    assert table.data_ptr() in {parameter.data_ptr() for parameter in model.parameters()}
